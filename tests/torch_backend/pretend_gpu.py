"""A pretended GPU: CPU tensors take the path of GPU tensors, and every operation on a stream is recorded.

``install()`` makes all groups of a process treat CPU tensors as tensors of GPU 0. A call that goes into a stream is
made at once by the CPU engine, so that its results can be checked; the log shows the order in which a GPU would run
it.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch

from unisono.torch_backend import cuda_calls, dispatch
from unisono.torch_backend.streams import Streams

CALLER = "caller"  # the stream of the program


class Event(NamedTuple):
    stream: str
    number: int


class PretendStreams(Streams):
    """Streams with names; ``log`` has what was done."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.made = 0
        self.events = 0
        self.kept: list[tuple[int, str]] = []
        self.capturing = False
        self.completed = True  # what queries answer
        self.receives: list[Any] = []  # that may not have ended
        self._current = CALLER

    def serves(self, tensor):
        return True

    def device_of(self, tensor):
        return 0

    def current_handle(self, device):
        return _handle(self._current)

    def current(self, device):
        return self._current

    def make(self, device, for_messages=False):
        self.made += 1
        return f"own{self.made}"

    def handle(self, stream):
        return _handle(stream)

    @contextmanager
    def on(self, stream):
        self._finish_receives()
        before, self._current = self._current, stream
        self.log.append(("enter", stream))
        yield
        self.log.append(("leave", stream))
        self._current = before

    def record(self, stream):
        self.events += 1
        self.log.append(("record", stream, self.events))
        return Event(stream, self.events)

    def wait(self, stream, event):
        self._finish_receives()
        self.log.append(("wait", stream, event.number))

    def follow(self, stream, earlier):
        self.log.append(("follow", stream, earlier))

    def is_done(self, event):
        assert not self.capturing, "an event of a graph cannot be queried"
        return self.completed

    def is_idle(self, stream):
        return True

    def synchronize(self, stream):
        assert not self.capturing
        self.log.append(("synchronize", stream))

    def is_capturing(self):
        return self.capturing

    def keep(self, tensors, stream):
        self.kept += [(tensor.data_ptr(), stream) for tensor in tensors]

    def _finish_receives(self):
        while self.receives:
            self.receives.pop().wait()

    def future(self, device, value, stream):
        self.log.append(("future", stream))
        future = torch.futures.Future()
        future.set_result(value)
        return future


def _handle(stream: str) -> int:
    return 0 if stream == CALLER else int(stream.removeprefix("own"))


class PretendComm:
    """A communicator whose CPU engine makes the calls that go into streams."""

    def __init__(self, comm: Any, streams: PretendStreams) -> None:
        self.comm, self.rank, self.size, self._streams = comm, comm.rank, comm.size, streams
        self.fault: Exception | None = None

    def enqueue(self, request, source, out, *, device, stream, timeout):
        self.raise_if_broken()
        assert device == 0
        assert timeout > 0
        self._streams.log.append(("call", request.collective.name, stream))
        self.comm.run(self.comm.plan(request), source, out, timeout=timeout)

    def enqueue_transfer(self, sending, peer, tag, address, count, dtype, *, device, stream, timeout):
        self.raise_if_broken()
        self._streams.log.append(("send" if sending else "recv", peer, stream))
        kind = getattr(torch, dtype)
        memory = np.frombuffer((ctypes.c_uint8 * (count * kind.itemsize)).from_address(address), np.uint8)
        if sending:
            self.comm.send(memory.copy(), peer, tag=tag, async_op=True, timeout=timeout)
        else:
            self._streams.receives.append(self.comm.recv(memory, peer, tag=tag, async_op=True, timeout=timeout))

    gpu_table = SimpleNamespace(
        repeat=lambda *call: False, start=lambda *call: None
    )  # every call takes the full path

    def remember_on_gpu(self, request, out, array, *, device):
        assert device == 0

    def raise_if_broken(self):
        if self.fault is not None:
            raise self.fault


def install() -> None:
    """Make the groups that this process creates from now on pretend."""
    make = cuda_calls.CudaCalls.__init__

    def pretend(self, comm, group, streams):
        make(self, PretendComm(comm, streams), group, streams)

    cuda_calls.CudaCalls.__init__ = pretend
    cuda_calls.CudaCalls.is_idle = lambda self: True
    dispatch.Streams = PretendStreams


def log_of(group: Any) -> list[Any]:
    """Return what was done on the streams of a group since the last time, and forget it."""
    streams = group._dispatcher.streams
    found, streams.log = streams.log, []
    return found
