"""How a call is made: at once on the caller's thread, in the background, or on the side lane."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import torch.distributed as dist

from unisono import _engine
from unisono.codecs import Codec
from unisono.collectives import Collective
from unisono.comm.communicator import Communicator
from unisono.errors import UsageError
from unisono.torch_backend.future_threads import InOrder
from unisono.torch_backend.futures import Callback, running_callback
from unisono.torch_backend.plan_cache import Blocks, PlanCache
from unisono.torch_backend.private import profiler_enabled
from unisono.torch_backend.profiling import in_profile
from unisono.torch_backend.side_lane import SideLane
from unisono.torch_backend.tensors import Finish, Tensor
from unisono.torch_backend.work import AllPending, EngineCall, FinishedWork, Pending, PendingWork

NO_LIMIT = timedelta(0)
FINISHED = FinishedWork()


class Call(NamedTuple):
    """A call of the engine. ``source`` and ``out`` lie in one piece; they may be the same."""

    what: str  # torch's name for it
    collective: Collective
    blocks: Blocks
    dtype: str
    source: Tensor
    out: Tensor
    op: str | None = None
    root: int | None = None
    codec: Codec | None = None


class Prepared(NamedTuple):
    """A call whose arguments were checked: nothing has been sent yet."""

    call: Call
    finish: Finish | None  # to be done when the engine is done
    result: Sequence[Tensor]  # what a future of the call holds


class CallOptions(NamedTuple):
    """How the caller wants it."""

    at_once: bool = False  # done when it returns; else a Work is returned meanwhile
    limit_s: float | None = None  # how long it may wait; None: as long as the group says


AT_ONCE, LATER = CallOptions(True), CallOptions(False)


def call_options_of(opts: Any, timeout: timedelta | None = None) -> CallOptions:
    """Read torch's options: an object of many kinds, a bare number, or nothing."""
    if timeout is None:
        timeout = getattr(opts, "timeout", None)
    at_once = not getattr(opts, "asyncOp", True)
    if timeout is not None and timeout > NO_LIMIT:
        return CallOptions(at_once, timeout.total_seconds())
    return AT_ONCE if at_once else LATER


class CallbackLane:
    """What makes the calls of callbacks: a communicator of the same ranks, and the order of its calls."""

    def __init__(self, comm: Communicator, algorithms: Mapping[str, Any]) -> None:
        self.comm = comm
        self.caller = PlanCache(comm, algorithms)
        self.lane = SideLane(comm)

    def close(self) -> None:
        """Leave; calls that still wait fail."""
        self.lane.close()
        self.comm.close()


class GroupDispatcher:
    """Makes the calls of one group."""

    def __init__(self, comm: Communicator, timeout_s: float, algorithms: Mapping[str, Any]) -> None:
        self.comm = comm
        self.timeout_s = timeout_s
        self.main = PlanCache(comm, algorithms)
        self._algorithms = algorithms
        self._aside: CallbackLane | None = None
        self._making_aside = threading.Lock()
        if not comm.can_duplicate_locally:
            self.aside()  # all ranks are here now; later they might not be
        self.endpoint = self.main.endpoint
        self.name = ""  # of the group
        self.calls = 0  # that were not made by callbacks
        self.closed = False
        self.coalescing: list[dist.Work] | None = None
        self.order = InOrder()
        self.unfinished: weakref.WeakSet[PendingWork] = weakref.WeakSet()

    def make_all(self, prepared: Sequence[Prepared], options: CallOptions, result: Sequence[Tensor]) -> dist.Work:
        """Make several calls as one; all were prepared, so that a wrong argument fails before the first is made."""
        if len(prepared) == 1:
            return self.make(prepared[0].call, options, prepared[0].finish, result)
        return self.together([self.make(one.call, options, one.finish, one.result) for one in prepared], result)

    def make(self, call: Call, options: CallOptions, finish: Finish | None, result: Sequence[Tensor]) -> dist.Work:
        """Make a call. ``finish`` is done when the engine is done; ``result`` is what a future of it holds."""
        if profiler_enabled():
            with in_profile(call.what, [call.source]):
                return self._make(call, options, finish, result)
        return self._make(call, options, finish, result)

    def _make(self, call: Call, options: CallOptions, finish: Finish | None, result: Sequence[Tensor]) -> dist.Work:
        self.check_open(call.what)
        limit_s = self.timeout_s if options.limit_s is None else options.limit_s
        callback = running_callback()
        if callback is not None:
            pending, key = self._make_aside(call, limit_s, callback)
        else:
            self.calls += 1
            plan = self.plan_of(call)
            if options.at_once and self.coalescing is None:
                self.endpoint.run(plan, call.source.data_ptr(), call.out.data_ptr(), limit_s)
                if finish is not None:
                    finish()
                return FINISHED
            self.endpoint.raise_if_broken()
            arrays = (call.source, call.out, result)  # kept alive: the result may lie one behind the other
            completion = self.endpoint.start(plan, call.source.data_ptr(), call.out.data_ptr(), limit_s, arrays)
            pending, key = EngineCall(self.endpoint, completion, self.order), f"{self.name}#{self.calls}"
        return self.goes_on(PendingWork(pending, result, finish, f"{call.what} of group {self.name}", key))

    def plan_of(self, call: Call) -> _engine.Plan:
        """Return the plan of a call that is not made by a callback."""
        return self.main.plan(call.collective, call.blocks, call.dtype, call.op, call.root, call.codec)

    def _make_aside(self, call: Call, limit_s: float, callback: Callback) -> tuple[Pending, str]:
        key = callback.key_of_next_call()
        side = self.aside()
        plan = side.caller.plan(call.collective, call.blocks, call.dtype, call.op, call.root, call.codec)

        def make() -> None:
            side.caller.endpoint.run(plan, call.source.data_ptr(), call.out.data_ptr(), limit_s)

        return side.lane.submit(f"{self.name} {key}", make), key

    def aside(self) -> CallbackLane:
        """Return what makes the calls of callbacks; few groups need it, and it takes a while to make."""
        with self._making_aside:
            if self._aside is None:
                self._aside = CallbackLane(self.comm.duplicate(), self._algorithms)
            return self._aside

    def set_timeout(self, seconds: float) -> None:
        """Limit the calls from now on."""
        self.timeout_s = self.endpoint.timeout_s = seconds
        with self._making_aside:
            if self._aside is not None:
                self._aside.caller.endpoint.timeout_s = seconds

    def goes_on(self, work: PendingWork) -> PendingWork:
        """Remember a call that goes on in the background."""
        self.unfinished.add(work)
        if self.coalescing is not None:
            self.coalescing.append(work)
        return work

    def together(self, works: Sequence[dist.Work], result: Sequence[Tensor]) -> dist.Work:
        """Return one work for several."""
        if len(works) == 1:
            return works[0]
        waiting = [work for work in works if isinstance(work, PendingWork)]
        if not waiting:
            return FINISHED

        def finish() -> None:
            for work in waiting:
                work.wait()

        pending = AllPending([work.pending for work in waiting])
        return PendingWork(pending, result, finish, f"calls of group {self.name}", waiting[0].key)

    def check_open(self, what: str) -> None:
        """Raise if the group was destroyed."""
        if self.closed:
            self.endpoint.check_process()
            raise UsageError(f"{what}: the process group {self.name} was destroyed")

    def close(self) -> None:
        """Finish what was started, and leave."""
        if not self.closed:
            self.closed = True
            if not self.comm.closed:
                self.aside()  # another rank may wait in its own: it must learn that this one leaves
            self.comm.close()
            if self._aside is not None:
                self._aside.close()

    def leave_in_child(self) -> None:
        """After a fork, in the child: what goes on belongs to the parent. Take no lock, as nobody may release it."""
        self.closed = True
        try:
            self.endpoint.check_process()
        except UsageError as error:
            for work in list(self.unfinished):
                work.leave_in_child(error)

    def abort(self, reason: str) -> None:
        """Break off all calls, on all ranks."""
        if not self.closed:
            self.comm.abort(reason)
            self.aside().comm.abort(reason)
            self.close()

    def has_unfinished_calls(self) -> bool:
        """Whether a call goes on in the background."""
        return any(not work.is_completed() for work in list(self.unfinished))
