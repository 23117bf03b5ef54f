"""A stand-in for the engine's GPU classes that records what a communicator does with them; nothing is moved."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

from unisono import _engine
from unisono.gpu import connection, driver

DEVICE_BYTES = 1 << 30  # device d has the addresses from (d + 1) * DEVICE_BYTES on
LOG: list[tuple] = []  # what was done in this process, in order


class Driver:
    devices_of_machine = 2
    mps = False
    peers = True

    def devices(self):
        count = self.devices_of_machine
        return [
            {
                "ordinal": ordinal, "name": "Stub", "uuid": f"{ordinal:032x}", "multiprocessors": 4, "major": 9,
                "minor": 0, "memory_bytes": DEVICE_BYTES, "mps": self.mps,
                "peers": [self.peers or ordinal == other for other in range(count)],
            }
            for ordinal in range(count)
        ]  # fmt: skip

    def device_of(self, address):
        return address // DEVICE_BYTES - 1


class Event:
    def __init__(self, number):
        self.number, self.over = number, False

    def wait(self, stream):
        LOG.append(("wait", self.number, stream))

    def done(self):
        return self.over

    def synchronize(self, timeout_s):
        LOG.append(("synchronize", self.number, timeout_s))
        return self.over


class Endpoint:
    staged = 0
    problem = ""  # why it cannot be made
    ends_at_once = False

    def __init__(self, driver, endpoint, board_offset, device, most, blocks, scratch_bytes, kernel_mode):
        if self.problem:
            raise RuntimeError(self.problem)
        self.events, self.kernels = itertools.count(), set()
        LOG.append(("made", board_offset, device, most, blocks, kernel_mode))

    def handles(self):
        return b"handle"

    def connect(self, all_handles):
        LOG.append(("connected", len(all_handles), set(all_handles)))

    def prepare(self):
        LOG.append(("prepared",))

    def load(self, key, image, shared_bytes):
        self.kernels.add(key)
        LOG.append(("load", key))

    def loaded(self, key):
        return key in self.kernels

    def make_plan(self, **facts):
        return SimpleNamespace(text=facts["text"], **{name: facts[name] for name in ("input_bytes", "output_bytes")})

    def run(self, plan, source, output, stream, timeout_s):
        LOG.append(("run", plan.text, source, output, stream, timeout_s))

    def transfer(self, sending, peer, tag, address, nbytes, dtype, stream, timeout_s):
        LOG.append(("transfer", sending, peer, tag, address, nbytes, dtype, stream, timeout_s))

    def record(self, stream):
        number = next(self.events)
        LOG.append(("record", number, stream))
        event = Event(number)
        event.over = self.ends_at_once
        return event

    def staged_buffers(self):
        return self.staged

    def synchronize(self, timeout_s):
        LOG.append(("synchronize all", timeout_s))

    def close(self):
        LOG.append(("close",))

    def abandon(self):
        LOG.append(("abandon",))


class Stream:
    made = itertools.count(1000)

    def __init__(self, endpoint, for_messages):
        self.handle = next(self.made)


class CudaArray:
    """An array at an address of a device."""

    def __init__(self, length=4, device=0, offset=0, stream=None):
        self.address = (device + 1) * DEVICE_BYTES + offset
        self.__cuda_array_interface__ = {
            "shape": (length,), "typestr": "<f4", "data": (self.address if length else 0, False), "version": 3,
            "stream": stream,
        }  # fmt: skip


def install() -> None:
    """Replace the engine's classes in this process, which must be that of a rank."""
    LOG.clear()
    _engine.GpuEndpoint, _engine.GpuStream = Endpoint, Stream
    _engine.gpu_board_bytes = lambda size: 4096
    driver.cuda_driver = connection.cuda_driver = Driver
    connection.kernel_image = lambda *names: b"image"
