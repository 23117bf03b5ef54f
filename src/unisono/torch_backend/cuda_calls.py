"""The calls of a group on GPU tensors: they go into streams, and the host does not wait.

::

    blocking       caller's stream   ── work ── call ── finish ── work that uses the result
    asynchronous   caller's stream   ── work ─┐                   ┌─ wait() ── work that uses the result
                   group's stream             └─ call ── finish ──┘
    send, recv     the same as asynchronous, on the stream of that direction and peer

``finish`` copies results into the user's tensors where these could not be used as they are. Messages between two
ranks in one direction have an order; messages in different directions, or with different peers, must not wait for
each other, so they have separate streams. A GPU serves few streams independently (8, unless
CUDA_DEVICE_MAX_CONNECTIONS says otherwise), which limits the number of streams. Those of messages have another
priority than the streams of programs: streams of different priorities never hold each other up.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple, Protocol

import torch.distributed as dist

from unisono.comm.call_request import CallRequest
from unisono.errors import CommError, UsageError
from unisono.message import Message
from unisono.torch_backend import messages, tensor_messages
from unisono.torch_backend.cuda_work import CudaWork, Held, all_tensors
from unisono.torch_backend.streams import Streams
from unisono.torch_backend.tensor_call import FINISHED, TensorCall
from unisono.torch_backend.tensors import Finish, Tensor
from unisono.torch_backend.torch_errors import as_torch_error
from unisono.torch_backend.work import Named

STREAMS_PER_DIRECTION = 3  # of messages between two ranks
COLLECTIVES = ("collectives", 0)
SEND, RECV = "send", "recv"


class GpuComm(Protocol):
    """The part of a communicator that calls on GPU tensors use. Nothing here waits for the GPU."""

    rank: int
    size: int

    @property
    def gpu_table(self) -> Any:
        """The table of remembered calls."""

    def remember_on_gpu(self, request: CallRequest, out: Any, array: Any, *, device: int) -> None:
        """Let the table repeat a call on tensors like these."""

    def enqueue(
        self, request: CallRequest, source: int, out: int, *, device: int, stream: int, timeout: float | None
    ) -> None:
        """Put a collective into the stream with this handle; raise if the communicator is broken."""

    def enqueue_transfer(
        self, sending: bool, peer: int, tag: int, address: int, count: int, dtype: str, *, device: int, stream: int,
        timeout: float | None,
    ) -> None:  # fmt: skip
        """Put a message to, or from, another rank into the stream with this handle."""

    def raise_if_broken(self) -> None:
        """Raise the error of the communicator, if it is broken."""


class Direction(NamedTuple):
    """The sender or receiver of a message between two ranks, as this rank sees it."""

    sending: bool
    peer: int
    tag: int


class CudaCalls:
    """Makes the calls of one group on GPU tensors."""

    def __init__(self, comm: Any, group: Named, streams: Streams) -> None:
        self.comm: GpuComm = comm
        self.streams = streams
        self.marks_calls = False  # whether blocking calls have a handle that tells when they are over
        self._group = weakref.ref(group)
        self._own_streams: dict[tuple[str, int, int], Any] = {}  # by purpose, number and device
        self._collective_streams: dict[int, tuple[Any, int]] = {}  # with their handles, by device
        self.devices: set[int] = set()  # on which calls were made

    # Calls.

    def call(self, call: TensorCall, blocking: bool, limit_s: float) -> dist.Work:
        """Make a call."""
        streams, source, out = self.streams, call.source, call.out
        device = streams.device_of(source)
        if source.device != out.device:
            raise UsageError(tensor_messages.TWO_DEVICES(call=call.name, first=source.device, second=out.device))
        if blocking:
            self.enqueue(
                call.request, source.data_ptr(), out.data_ptr(), device, streams.current_handle(device), limit_s
            )
            if call.finish is not None:
                call.finish()
            return self._marked(call, device) if self.marks_calls else FINISHED
        stream = self._follow(COLLECTIVES, device)
        self.enqueue(call.request, source.data_ptr(), out.data_ptr(), device, streams.handle(stream), limit_s)
        return self._work(call.name, device, stream, call.finish, call.result, [source, out])

    def enqueue(self, request: CallRequest, source: int, out: int, device: int, stream: int, limit_s: float) -> None:
        """Put a call into a stream."""
        self.comm.enqueue(request, source, out, device=device, stream=stream, timeout=limit_s)
        self.devices.add(device)

    def transfer(
        self, name: str, direction: Direction, tensor: Tensor, dtype: str, count: int, finish: Finish | None,
        result: list[Tensor], limit_s: float,
    ) -> CudaWork:  # fmt: skip
        """Send or receive ``count`` elements of ``dtype`` in the memory of a tensor."""
        streams, device = self.streams, self.streams.device_of(tensor)
        distance = (direction.peer - self.comm.rank) % self.comm.size
        purpose = SEND if direction.sending else RECV
        stream = self._follow((purpose, distance % STREAMS_PER_DIRECTION), device)
        self.comm.enqueue_transfer(
            *direction, tensor.data_ptr(), count, dtype, device=device, stream=streams.handle(stream), timeout=limit_s
        )
        self.devices.add(device)
        return self._work(name, device, stream, finish, result, [tensor])

    def _work(
        self, name: str, device: int, stream: Any, finish: Finish | None, result: Any, used: list[Tensor]
    ) -> CudaWork:
        streams = self.streams
        if finish is not None:
            with streams.on(stream):
                finish()
        held = Held(streams, used + all_tensors(result), stream, streams.current_handle(device))
        return CudaWork(self, name, (device, stream), result, held)

    def _marked(self, call: TensorCall, device: int) -> CudaWork:
        return CudaWork(self, call.name, (device, self.streams.current(device)), call.result, None)

    def _follow(self, purpose: tuple[str, int], device: int) -> Any:
        """Return one of the group's streams, which waits for the caller's."""
        stream = self._own_stream(purpose, device)
        self.streams.follow(stream, self.streams.current(device))
        return stream

    def _own_stream(self, purpose: tuple[str, int], device: int) -> Any:
        key = (*purpose, device)
        stream = self._own_streams.get(key)
        if stream is None:
            stream = self._own_streams[key] = self.streams.make(device, purpose[0] in (SEND, RECV))
        return stream

    def collective_stream(self, device: int) -> tuple[Any, int]:
        """Return the stream of asynchronous collectives, and its handle."""
        found = self._collective_streams.get(device)
        if found is None:
            stream = self._own_stream(COLLECTIVES, device)
            found = self._collective_streams[device] = (stream, self.streams.handle(stream))
        return found

    def on_lane(self, call: TensorCall, comm: GpuComm, limit_s: float) -> Finish:
        """Return a function that makes the call of a callback on another communicator and waits for it.

        Such a call is made by any thread, later. (Callbacks of calls on GPU tensors run at once; this one belongs to
        a call on CPU tensors.)
        """
        streams, device = self.streams, self.streams.device_of(call.source)
        stream = self._follow(("callbacks", 0), device)

        def run() -> None:
            comm.enqueue(
                call.request, call.source.data_ptr(), call.out.data_ptr(), device=device,
                stream=streams.handle(stream), timeout=limit_s,
            )  # fmt: skip
            if call.finish is not None:
                with streams.on(stream):
                    call.finish()
            streams.synchronize(stream)

        return run

    # The state of the group.

    def name_of(self, call: str) -> Message:
        """Return the name of a call with that of its group."""
        group = self._group()
        return messages.CALL_OF_GROUP(call=call, group="" if group is None else group.name)

    def check(self) -> None:
        """Raise the error of a call that has failed on the GPU."""
        try:
            self.comm.raise_if_broken()
        except CommError as error:
            group = self._group()
            if group is not None:
                group.has_raised = True
            raise as_torch_error(error)  # noqa: B904 (it is the same error)

    def unseen_error(self) -> CommError | None:
        """Return the error of a call that has failed on the GPU, unless an error of the group was raised already."""
        group = self._group()
        if self.devices and group is not None and not group.has_raised:
            try:
                self.comm.raise_if_broken()
            except CommError as error:
                return error
        return None

    def synchronize(self) -> None:
        """Have the host wait for all calls, and for the caller's streams on the devices that were used."""
        for stream in self._own_streams.values():
            self.streams.synchronize(stream)
        for device in self.devices:
            self.streams.synchronize(self.streams.current(device))

    def is_idle(self) -> bool:
        """Return whether all calls are over."""
        found = [*self._own_streams.values(), *(self.streams.current(device) for device in self.devices)]
        return all(self.streams.is_idle(stream) for stream in found)
