"""The calls of a communicator on CUDA arrays: their plans, and the streams on which they run.

A call is enqueued on the caller's current stream, and the host goes on at once. With ``async_op`` it is enqueued on a
stream of the communicator, behind everything that was on the current stream. Calls on CUDA arrays are not traced.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from unisono import _engine
from unisono.bootstrap.membership import Link
from unisono.comm import gpu_messages
from unisono.comm.arguments import Arguments
from unisono.comm.arrays import ANY_DEVICE, ELEMENT_BYTES, Array
from unisono.comm.call_request import CallRequest
from unisono.comm.exchange import exchange_bytes
from unisono.comm.gpu_topk import enqueue_largest
from unisono.comm.gpu_work import GpuWork
from unisono.comm.work import FOREVER_S
from unisono.errors import CommError, UsageError

if TYPE_CHECKING:
    from unisono.comm.dispatch import Dispatcher
    from unisono.comm.gpu_plans import GpuPlans
    from unisono.gpu.connection import GpuSide, GpuStatus

CONNECTION = "GPU connection"  # the text of the calls by which the ranks connect their GPUs
COLLECTIVES = "collectives"  # the stream of asynchronous collectives
# Messages to different peers and in different directions should not wait for each other, but a GPU serves only a few
# streams independently (8, unless CUDA_DEVICE_MAX_CONNECTIONS states another number).
STREAMS_PER_DIRECTION = 3


class OutsideCall(NamedTuple):
    """A call as the caller wrote it, for the table of the fast path (engine/bindings/known_plans.hpp)."""

    number: int  # of the collective
    out: Any
    array: Any
    op: Any
    root: int
    algorithm: Any
    codec: Any
    part_is_input: bool  # whether the input may be this rank's part of the output


class GpuCalls:
    """Makes the calls of one communicator on CUDA arrays.

    It refers to the dispatcher in its calls only: a communicator without any reference is freed at once.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._side: GpuSide | None = None
        self._plans: GpuPlans | None = None
        self._streams: dict[str, _engine.GpuStream] = {}
        self.table = _engine.GpuTable()  # of the fast path
        self._repeats = False  # whether the table is in use
        self._kept: deque[tuple[_engine.GpuEvent, list[Any]]] = deque()  # arrays of calls that may still run
        self._warned_of_staging = False

    def connect(self, dispatcher: Dispatcher, device: int, call: str) -> GpuSide:
        """Return the GPU side of the communicator; the first call makes it, with all ranks together."""
        side = self._side
        if side is None:
            from unisono.comm.gpu_plans import GpuPlans  # most programs need no GPU
            from unisono.gpu.connection import connect_gpu

            def exchange(data: bytes) -> list[bytes]:
                return exchange_bytes(dispatcher, data, CONNECTION)

            self._side = side = connect_gpu(self._link, max(device, 0), exchange, call)
            self._link.before_close.append(self._release)
            self._plans = GpuPlans(self._link, side, self.table.forget)
        elif device not in (ANY_DEVICE, side.ordinal):
            raise UsageError(gpu_messages.OTHER_DEVICE(call=call, found=device, expected=side.ordinal))
        return side

    def call(
        self, dispatcher: Dispatcher, request: CallRequest, arguments: Arguments, async_op: bool, limit_s: float,
        outside: OutsideCall | None,
    ) -> GpuWork | None:  # fmt: skip
        """Make a call of a collective; its arguments were checked.

        ``outside`` is the call as the caller wrote it; None if it cannot be repeated on the fast path.
        """
        assert arguments.device is not None
        side = self.connect(dispatcher, arguments.device, request.collective.name)
        source, out = arguments.input, arguments.output

        def run(plan: _engine.GpuPlan, source: int, out: int, stream: int) -> None:
            side.endpoint.run(plan, source, out, stream, limit_s)

        if request.codec is not None and request.codec.is_topk:
            enqueue, text = enqueue_largest(request, out.owner, self._link.size, side.ordinal, self.plan, run)
        else:
            plan = self.plan(request)
            enqueue, text = partial(run, plan, source.address, out.address), plan.text
            if outside is not None:
                self._remember(side, plan, outside)
        return self._enqueue(side, enqueue, (source.owner, out.owner), text, async_op, COLLECTIVES)

    def transfer(
        self, dispatcher: Dispatcher, sending: bool, peer: int | None, tag: int, buffer: Array, async_op: bool,
        limit_s: float,
    ) -> GpuWork | None:  # fmt: skip
        """Send an array to a peer, or receive it."""
        name, preposition = ("send", "to") if sending else ("recv", "from")
        if peer is None:
            raise UsageError(gpu_messages.ANY_SOURCE())
        assert buffer.device is not None
        side = self.connect(dispatcher, buffer.device, name)

        def enqueue(stream: int) -> None:
            side.endpoint.transfer(
                sending, peer, tag, buffer.address, buffer.nbytes, buffer.dtype, stream, limit_s
            )  # fmt: skip

        text = f"{name} of {buffer.length} {buffer.dtype} {preposition} rank {peer} with tag {tag}, device=cuda"
        lane = f"{name} {(peer - self._link.rank) % self._link.size % STREAMS_PER_DIRECTION}"
        return self._enqueue(side, enqueue, (buffer.owner,), text, async_op, lane)

    def enqueue(
        self, dispatcher: Dispatcher, request: CallRequest, source: int, out: int, device: int, stream: int,
        limit_s: float,
    ) -> None:  # fmt: skip
        """Enqueue a call on a stream; for code that builds on a communicator."""
        side = self.connect(dispatcher, device, request.collective.name)
        side.endpoint.run(self.plan(request), source, out, stream, limit_s)
        self._report_staging(side)

    def enqueue_transfer(
        self, dispatcher: Dispatcher, sending: bool, peer: int, tag: int, address: int, count: int, dtype: str,
        device: int, stream: int, limit_s: float,
    ) -> None:  # fmt: skip
        """Enqueue a message on a stream; for code that builds on a communicator."""
        side = self.connect(dispatcher, device, "send" if sending else "recv")
        nbytes = count * ELEMENT_BYTES[dtype]
        side.endpoint.transfer(sending, peer, tag, address, nbytes, dtype, stream, limit_s)
        self._report_staging(side)

    def remember(self, dispatcher: Dispatcher, request: CallRequest, outside: OutsideCall, device: int) -> None:
        """Let the fast path repeat a call on tensors like these; for code that builds on a communicator."""
        side = self.connect(dispatcher, device, request.collective.name)
        self._remember(side, self.plan(request), outside)

    def plan(self, request: CallRequest) -> _engine.GpuPlan:
        """Return the plan of a call, made once for all equal calls; the GPUs are connected."""
        assert self._plans is not None
        return self._plans.plan(request)

    def _remember(self, side: GpuSide, plan: _engine.GpuPlan, outside: OutsideCall) -> None:
        """Let the fast path repeat a call on tensors."""
        from unisono.gpu.streams import is_tensor, torch_stream_function

        if not is_tensor(outside.out if outside.out is not None else outside.array):
            return
        if not self._repeats:
            find_stream = torch_stream_function()
            report = partial(_report_staging, self._link.rank)
            self.table.connect(side.endpoint, side.ordinal, self._link.rank, find_stream, report)
            self._link.before_close.append(self.table.clear)
            self._repeats = True
        self.table.remember(plan, *outside)

    def _enqueue(
        self, side: GpuSide, enqueue: Callable[[int], None], arrays: tuple[Any, ...], text: str, async_op: bool,
        lane: str,
    ) -> GpuWork | None:  # fmt: skip
        """Enqueue a call where it belongs; ``lane`` names the stream of asynchronous calls of its kind."""
        from unisono.gpu.streams import keep_for_stream, stream_finder

        current_stream = stream_finder(next(array for array in arrays if array is not None), side.ordinal)
        endpoint = side.endpoint
        if not async_op:
            enqueue(current_stream())
            self._report_staging(side)
            return None
        stream = self._stream(side, lane)
        endpoint.record(current_stream()).wait(stream)
        enqueue(stream)
        event = endpoint.record(stream)
        kept = keep_for_stream(arrays, stream, side.ordinal)
        self._release_arrays()
        if kept:
            self._kept.append((event, kept))
        self._report_staging(side)
        return GpuWork(self._link.endpoint, event, text, current_stream)

    def _release_arrays(self) -> None:
        """Release the arrays of asynchronous calls that are over."""
        with suppress(CommError):  # a broken communicator keeps them; the next call raises the error
            while self._kept and self._kept[0][0].done():
                self._kept.popleft()

    def _release(self) -> None:
        """Release the streams and the arrays of asynchronous calls, after the GPU side is closed."""
        self._streams.clear()
        with suppress(CommError):  # after a fault, a kernel may still use the arrays
            self._link.endpoint.raise_if_broken()
            self._kept.clear()

    def _stream(self, side: GpuSide, lane: str) -> int:
        stream = self._streams.get(lane)
        if stream is None:
            stream = self._streams[lane] = _engine.GpuStream(side.endpoint, lane != COLLECTIVES)
        return stream.handle

    def _report_staging(self, side: GpuSide) -> None:
        if not self._warned_of_staging and side.endpoint.staged_buffers():
            self._warned_of_staging = True
            _report_staging(self._link.rank, 7)

    def synchronize(self) -> None:
        """Wait on the host until all calls are over; raise their error."""
        if self._side is not None:
            self._side.endpoint.synchronize(FOREVER_S)
            self._kept.clear()
        self._link.endpoint.raise_if_broken()

    def status(self) -> GpuStatus | None:
        """Return the state of the GPU side; None before the first call."""
        return None if self._side is None else self._side.status()


def _report_staging(rank: int, stacklevel: int = 2) -> None:
    warnings.warn(gpu_messages.STAGED(rank=rank), stacklevel=stacklevel)
