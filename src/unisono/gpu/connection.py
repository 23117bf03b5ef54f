"""The GPU side of a communicator: made by all ranks together, when the first call on CUDA arrays is made.

The ranks exchange the facts about their GPUs, agree on a mode (agreement.py), allocate the memory for flags, and open
that of the others. All messages go through the communicator's shared memory on the CPU.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import NamedTuple

from unisono import _engine
from unisono.bootstrap.membership import Link
from unisono.errors import CommError, UnisonoError, UsageError
from unisono.gpu import connection_messages as messages
from unisono.gpu.agreement import MOST_RANKS, Agreement, GpuFacts, Mode, agree
from unisono.gpu.driver import cuda_driver
from unisono.gpu.layout import SCRATCH_BYTES
from unisono.gpu.nvrtc import kernel_image
from unisono.message import Message

Exchange = Callable[[bytes], list[bytes]]  # sends bytes to all ranks; returns those of every rank
# Loaded by all ranks together, so that all learn if one cannot compile. It copies messages of every type.
FIRST_KERNEL = ("uint8", "none", "none")
DEFAULT_PIPE_DIRECTORY = "/tmp/nvidia-mps"


class GpuStatus(NamedTuple):
    """The state of a communicator's GPU side."""

    mode: Mode  # "kernel" or "stream"
    reason: Message  # for the mode
    blocks: int  # the most thread blocks of a call
    device: str  # the name of the GPU
    mps: bool
    staged: int  # how often memory could not be shared with the other ranks, so that it is copied


class GpuSide:
    """One rank's part of the connection between the GPUs of a communicator."""

    def __init__(
        self, ordinal: int, device: _engine.GpuDevice, agreement: Agreement, endpoint: _engine.GpuEndpoint
    ) -> None:
        self.ordinal = ordinal
        self.agreement = agreement
        self.endpoint = endpoint
        self._device = device

    def kernel(self, dtype: str, reduction: str, wire: str) -> str:
        """Return the name of the kernel for these; compile and load it at first use."""
        return _load(self.endpoint, self._device, self.agreement.most, (dtype, reduction, wire))

    def status(self) -> GpuStatus:
        """Return the state."""
        mode, reason, blocks, *_ = self.agreement
        name, mps = self._device["name"], self._device["mps"]
        return GpuStatus(mode, reason, blocks, name, mps, self.endpoint.staged_buffers())


def connect_gpu(link: Link, ordinal: int, exchange: Exchange, call: str) -> GpuSide:
    """Return the GPU side of this rank on the CUDA device ``ordinal``; every rank of the communicator calls this.

    ``call`` is the call that needs it. Raise UsageError if the GPUs cannot work together, and CommError if one of
    them fails; then all ranks do.
    """
    if any(link.far):
        raise UsageError(messages.SEVERAL_HOSTS(call=call, hosts=link.hosts.count))
    if link.size > MOST_RANKS:
        raise UsageError(messages.TOO_MANY_RANKS(call=call, size=link.size, most=MOST_RANKS))
    device: _engine.GpuDevice | None = None
    try:
        device = _device(ordinal)
        facts = _facts(link, device)
    except UnisonoError as error:  # the other ranks must learn of it
        facts = GpuFacts(problem=str(error))
    agreement = agree([GpuFacts.unpacked(data) for data in exchange(facts.packed())])
    assert device is not None  # otherwise the ranks would not have agreed
    endpoint = _opened(link, device, agreement, exchange)
    link.before_close.append(endpoint.close)
    link.in_forked_child.append(endpoint.abandon)
    return GpuSide(ordinal, device, agreement, endpoint)


def _device(ordinal: int) -> _engine.GpuDevice:
    devices = cuda_driver().devices()
    if not 0 <= ordinal < len(devices):
        raise UsageError(messages.NO_SUCH_DEVICE(device=ordinal, count=len(devices)))
    return devices[ordinal]


def _facts(link: Link, device: _engine.GpuDevice) -> GpuFacts:
    # A GPU that this process cannot see is not listed: whether its memory can be opened turns out later.
    unreachable = tuple(
        other["uuid"]
        for other, reachable in zip(cuda_driver().devices(), device["peers"], strict=True)
        if not reachable and other["uuid"] != device["uuid"]
    )
    board = 0
    if link.rank == 0:
        assert link.resources.first is not None
        board = link.resources.first.reserve_space(_engine.gpu_board_bytes(link.size))
    return GpuFacts(
        "", board, device["name"], device["uuid"], device["multiprocessors"], device["mps"],
        os.environ.get("CUDA_MPS_PIPE_DIRECTORY", DEFAULT_PIPE_DIRECTORY), unreachable,
    )  # fmt: skip


def _load(endpoint: _engine.GpuEndpoint, device: _engine.GpuDevice, most: int, variant: tuple[str, str, str]) -> str:
    """Return the name of the kernel for a type, a reduction and a wire format; compile and load it at first use."""
    name = ".".join(variant)
    if not endpoint.loaded(name):
        endpoint.load(name, kernel_image(*variant, most, device["major"], device["minor"]), 0)
    return name


def _opened(link: Link, device: _engine.GpuDevice, agreement: Agreement, exchange: Exchange) -> _engine.GpuEndpoint:
    """Return the endpoint of this rank, connected to those of the others."""
    endpoint: _engine.GpuEndpoint | None = None

    def make() -> bytes:
        nonlocal endpoint
        endpoint = _engine.GpuEndpoint(
            cuda_driver(), link.endpoint, agreement.board, device["ordinal"], agreement.most, agreement.blocks,
            SCRATCH_BYTES, agreement.mode == "kernel",
        )  # fmt: skip
        _load(endpoint, device, agreement.most, FIRST_KERNEL)
        return endpoint.handles()

    def connect(handles: list[bytes]) -> bytes:
        assert endpoint is not None
        endpoint.connect(handles)
        return b""

    def prepare() -> bytes:
        assert endpoint is not None
        endpoint.prepare()
        return b""

    try:
        handles = _together(make, exchange)
        _together(lambda: connect(handles), exchange)
        _together(prepare, exchange)  # it waits for all ranks, so it begins when all of them are connected
    except BaseException:
        if endpoint is not None:
            endpoint.close()
        raise
    assert endpoint is not None
    return endpoint


def _together(action: Callable[[], bytes], exchange: Exchange) -> list[bytes]:
    """Act on every rank; return what each rank's action has returned, or raise CommError if one has failed."""
    failure: Exception | None = None
    result = b""
    try:
        result = action()
    except Exception as error:  # the other ranks wait for this one
        failure = error
    answer = json.dumps({"problem": "" if failure is None else str(failure), "result": result.hex()})
    answers = [json.loads(each) for each in exchange(answer.encode())]
    for rank, each in enumerate(answers):
        if each["problem"]:
            reason = failure.message if isinstance(failure, UnisonoError) else each["problem"]
            raise CommError(messages.PROBLEM_ON_RANK(rank=rank, reason=reason), rank=rank) from failure
    return [bytes.fromhex(each["result"]) for each in answers]
