"""The calls of a process group: made on the caller's thread, in the background, or on the side lane.

::

    tensors ──> TensorCall (its CallRequest, its memory) ──> plan ──> engine
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from unisono.codecs import Codec
from unisono.collectives import Collective
from unisono.comm.call_request import CallRequest
from unisono.comm.communicator import Communicator
from unisono.compiler import Lengths
from unisono.errors import CommError, UsageError
from unisono.torch_backend import messages, watchdog
from unisono.torch_backend.cuda_calls import CudaCalls
from unisono.torch_backend.cuda_work import CudaWork, JoinedWork
from unisono.torch_backend.future_threads import InOrder
from unisono.torch_backend.futures import Callback, running_callback
from unisono.torch_backend.private import profiler_enabled
from unisono.torch_backend.profiling import in_profile
from unisono.torch_backend.side_lane import SideLane
from unisono.torch_backend.streams import Streams
from unisono.torch_backend.tensor_call import FINISHED, CallOptions, TensorCall
from unisono.torch_backend.tensors import Tensor
from unisono.torch_backend.torch_errors import as_torch_error
from unisono.torch_backend.work import AllPending, PendingWork

Tracked = TypeVar("Tracked", PendingWork, CudaWork)


class CallbackLane:
    """Makes the calls of callbacks: a second communicator of the same ranks, and the order of its calls."""

    def __init__(self, comm: Communicator) -> None:
        self.comm = comm
        self.lane = SideLane(comm)

    def close(self) -> None:
        """Leave; calls that still wait fail."""
        self.lane.close()
        self.comm.close()


class GroupDispatcher:
    """Makes the calls of one group."""

    records_calls = False  # a flight recorder must see every call, so none takes the fast path

    def __init__(self, comm: Communicator, timeout_s: float, algorithms: Mapping[str, Any]) -> None:
        self.comm = comm
        self.timeout_s = timeout_s
        self.algorithms = algorithms  # by collective
        self._kinds: dict[tuple[Collective, str | None, int | None], CallRequest] = {}
        self._callback_lane: CallbackLane | None = None
        self._creating_lane = threading.Lock()
        if not comm.can_duplicate_locally:
            self.callback_lane()  # all ranks are here now; later they might not be
        self.name = ""  # of the group
        self.calls = 0  # that were not made by callbacks
        self.closed = False
        self.has_raised = False  # whether a call has failed, and the program knows it
        self.coalescing: list[dist.Work] | None = None
        self.order = InOrder()
        self.unfinished: weakref.WeakSet[PendingWork] = weakref.WeakSet()
        self.streams = Streams()
        self.cuda: CudaCalls | None = None  # once there is a call on GPU tensors

    def request(
        self, collective: Collective, lengths: Lengths, dtype: str, op: str | None = None, root: int | None = None,
        codec: Codec | None = None,
    ) -> CallRequest:  # fmt: skip
        """Return the request of a call, with the algorithm that the group's options name."""
        # Few algorithms support unequal blocks; the one that the options name is meant for the usual calls.
        usual = collective.single_array or lengths.equal_blocks
        algorithm = self.algorithms.get(collective.name) if usual else None
        return CallRequest(collective, op, root, algorithm, codec, dtype, lengths)

    def kind(self, collective: Collective, op: str | None = None, root: int | None = None) -> CallRequest:
        """Return the request of calls of any length and type, by which the fast path knows them."""
        kind = self._kinds.get((collective, op, root))
        if kind is None:
            algorithm = self.algorithms.get(collective.name)
            kind = self._kinds[collective, op, root] = CallRequest(collective, op, root, algorithm)
        return kind

    def kind_of(self, request: CallRequest) -> CallRequest:
        """Return the same for a request."""
        return self.kind(request.collective, request.op, request.root)

    def call_all(self, calls: Sequence[TensorCall], options: CallOptions, result: Sequence[Tensor]) -> dist.Work:
        """Make several calls as one; all were checked, so a wrong argument fails before the first is made."""
        if len(calls) == 1:
            return self.call(calls[0].with_result(result), options)
        return self.together([self.call(call, options) for call in calls], result)

    def call(self, call: TensorCall, options: CallOptions) -> dist.Work:
        """Make a call."""
        try:
            if profiler_enabled():
                with in_profile(call.name, [call.source]):
                    return self._call(call, options)
            return self._call(call, options)
        except CommError:
            self.has_raised = True
            raise

    def _call(self, call: TensorCall, options: CallOptions) -> dist.Work:
        self.check_open(call.name)
        limit_s = self.timeout_s if options.limit_s is None else options.limit_s
        callback = running_callback()
        if callback is not None:
            return self._call_on_lane(call, limit_s, callback)
        self.calls += 1
        if self.streams.serves(call.source):
            work = self.cuda_calls().call(call, options.blocking and self.coalescing is None, limit_s)
            return self.track(work) if isinstance(work, CudaWork) else work
        plan = self.comm.plan(call.request)
        source, out = call.source.data_ptr(), call.out.data_ptr()
        if options.blocking and self.coalescing is None:
            self.comm.run(plan, source, out, timeout=limit_s)
            if call.finish is not None:
                call.finish()
            return FINISHED
        keeps = (call.source, call.out, call.result)  # the result may consist of adjacent tensors
        pending = self.comm.run(plan, source, out, async_op=True, timeout=limit_s, keeps=keeps)
        assert pending is not None
        return self.track(PendingWork(pending, call.result, call.finish, (self, call.name), self.calls, self.order))

    def _call_on_lane(self, call: TensorCall, limit_s: float, callback: Callback) -> dist.Work:
        key = callback.key_of_next_call()
        side = self.callback_lane()
        if self.streams.serves(call.source):
            gpu: Any = side.comm
            pending = side.lane.submit(f"{self.name} {key}", self.cuda_calls().on_lane(call, gpu, limit_s))
            return self.track(PendingWork(pending, call.result, None, (self, call.name), key))
        plan = side.comm.plan(call.request)

        def run() -> None:
            side.comm.run(plan, call.source.data_ptr(), call.out.data_ptr(), timeout=limit_s)

        pending = side.lane.submit(f"{self.name} {key}", run)
        return self.track(PendingWork(pending, call.result, call.finish, (self, call.name), key))

    def callback_lane(self) -> CallbackLane:
        """Return what makes the calls of callbacks; few groups need it, and it takes a while to create."""
        with self._creating_lane:
            if self._callback_lane is None:
                self._callback_lane = CallbackLane(self.comm.duplicate())
            return self._callback_lane

    def set_timeout(self, seconds: float) -> None:
        """Set the timeout of the calls from now on."""
        self.timeout_s = self.comm.timeout = seconds
        with self._creating_lane:
            if self._callback_lane is not None:
                self._callback_lane.comm.timeout = seconds

    def finish_on_gpu(self, device: torch.device | None) -> None:
        """Have the host wait for the calls on GPU tensors, and for the caller's stream on ``device``, if it has any.

        A barrier does: like that of NCCL, it comes after everything in the streams.
        """
        if device is not None and device.type == "cuda":
            self.streams.synchronize(self.streams.current(device.index))
        if self.cuda is not None:
            self.cuda.synchronize()
            self.cuda.check()

    def is_usual(self) -> bool:
        """Return whether calls of the group are made by the user's thread, one by one, and are not watched."""
        return (
            running_callback() is None
            and self.coalescing is None
            and not profiler_enabled()
            and not self.closed
            and not self.records_calls
        )

    def cuda_calls(self) -> CudaCalls:
        """Return what makes the calls on GPU tensors."""
        if self.cuda is None:
            self.cuda = CudaCalls(self.comm, self, self.streams)
            self.cuda.marks_calls = self.records_calls
            watchdog.watch(self.cuda)
        return self.cuda

    def track(self, work: Tracked) -> Tracked:
        """Keep track of a call that runs in the background."""
        if isinstance(work, PendingWork):
            self.unfinished.add(work)
        if self.coalescing is not None:
            self.coalescing.append(work)
        return work

    def together(self, works: Sequence[dist.Work], result: Sequence[Tensor]) -> dist.Work:
        """Return one work for several."""
        if len(works) == 1:
            return works[0]
        on_gpu = [work for work in works if isinstance(work, CudaWork)]
        if on_gpu:
            return JoinedWork(works, on_gpu[-1], result)
        waiting = [work for work in works if isinstance(work, PendingWork)]
        if not waiting:
            return FINISHED

        def finish() -> None:
            for work in waiting:
                work.wait()

        first = waiting[0]
        orders = {work.order for work in waiting}
        order = orders.pop() if len(orders) == 1 else None  # calls of one group end in order, so these do, too
        pending = AllPending([work.pending for work in waiting])
        return PendingWork(pending, result, finish, (self, "calls"), first.key, order)

    def check_open(self, name: str) -> None:
        """Raise if the group was destroyed."""
        if self.closed:
            self.comm.check_process()
            raise UsageError(messages.GROUP_DESTROYED(call=name, group=self.name))

    def close(self) -> None:
        """Finish what was started, and leave."""
        if not self.closed:
            self.closed = True
            unseen = None if self.cuda is None else self.cuda.unseen_error()
            if not self.comm.closed:
                self.callback_lane()  # another rank may wait in its own: it must learn that this one leaves
            self.comm.close()
            if self._callback_lane is not None:
                self._callback_lane.close()
            if unseen is not None:
                raise as_torch_error(unseen)

    def leave_in_child(self) -> None:
        """After a fork, in the child: running calls belong to the parent. Take no lock: none would be released."""
        self.closed = True
        try:
            self.comm.check_process()
        except UsageError as error:
            for work in list(self.unfinished):
                work.leave_in_child(error)

    def abort(self, reason: str) -> None:
        """Abort all calls, on all ranks."""
        if not self.closed:
            self.comm.abort(reason)
            self.callback_lane().comm.abort(reason)
            self.close()

    def has_unfinished_calls(self) -> bool:
        """Return whether a call runs in the background."""
        if any(not work.is_completed() for work in list(self.unfinished)):
            return True
        return self.is_busy_on_gpu()

    def is_busy_on_gpu(self) -> bool:
        """Return whether a call on GPU tensors runs."""
        return not self.closed and self.cuda is not None and not self.cuda.is_idle()
