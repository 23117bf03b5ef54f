"""The fast path of frequent calls: the engine repeats a call that equals an earlier one.

The full path checks the arguments of a call and makes its plan; where the engine can use the user's tensors as they
are, it lets the engine remember the plan (``remember``). A later call on tensors of the same bytes and types goes
straight to the engine, which checks the tensors again: each must hold its values in one piece of existing memory, and
they must not overlap. Blocking and asynchronous calls take the fast path alike. Each function here returns None where
anything is unusual; the call then takes the full path, which reports what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist

from unisono import collectives
from unisono.comm.call_request import CallRequest
from unisono.compiler import Lengths
from unisono.errors import CommError, UnisonoError
from unisono.torch_backend import cuda_fast_path
from unisono.torch_backend.dispatch import GroupDispatcher
from unisono.torch_backend.futures import running_callback
from unisono.torch_backend.reductions import plain_name
from unisono.torch_backend.tensor_call import FINISHED, TensorCall
from unisono.torch_backend.tensors import KNOWN, Finish, Tensor, address_of_values, spread
from unisono.torch_backend.torch_errors import as_torch_error
from unisono.torch_backend.work import NO_LIMIT, PendingWork


def remember(dispatcher: GroupDispatcher, call: TensorCall, out: Tensor, source: Tensor | None = None) -> None:
    """Let the engine repeat a call, if it uses the user's tensors as they are."""
    as_they_are = call.finish is None and call.out is out and call.source is (out if source is None else source)
    if as_they_are and not dispatcher.records_calls and running_callback() is None:
        comm, request = dispatcher.comm, call.request
        if dispatcher.streams.serves(out):
            # The table compares names by identity: these are those of the kind.
            kind = dispatcher.kind_of(request)
            request = request._replace(op=kind.op, algorithm=kind.algorithm)
            cuda_fast_path.remember(dispatcher, request, out, source)
            return
        comm.remember(comm.plan(request), dispatcher.kind_of(request), out, source)


def repeat(
    dispatcher: GroupDispatcher, name: str, kind: CallRequest, out: Tensor, source: Tensor | None, opts: Any,
    result: Sequence[Tensor], finish: Finish | None = None,
) -> dist.Work | None:  # fmt: skip
    """Make a call that equals an earlier one; ``kind`` is its request without lengths and type."""
    if not dispatcher.is_usual() or (kind.root or 0) < 0:
        return None
    limit = opts.timeout
    limit_s = limit.total_seconds() if limit > NO_LIMIT else dispatcher.timeout_s
    try:
        if dispatcher.cuda is not None:
            made = cuda_fast_path.repeat(dispatcher, name, kind, out, source, opts.asyncOp, limit_s)
            if made is not None:
                return made
        work = dispatcher.comm.repeat(kind, out, source, async_op=opts.asyncOp, timeout=limit_s)
    except UnisonoError as error:
        dispatcher.has_raised = dispatcher.has_raised or isinstance(error, CommError)
        raise as_torch_error(error)  # noqa: B904 (it is the same error)
    if work is False:
        return None
    dispatcher.calls += 1
    if work is not True:
        call = (dispatcher, name)
        return dispatcher.track(PendingWork(work, result, finish, call, dispatcher.calls, dispatcher.order))
    if finish is not None:
        finish()
    return FINISHED


def all_reduce(group: Any, tensor: Tensor, opts: Any) -> dist.Work | None:
    """Reduce one tensor on all ranks."""
    op = plain_name(opts.reduceOp)
    if op is None:
        return None
    dispatcher: GroupDispatcher = group._dispatcher
    kind = dispatcher.kind(collectives.all_reduce, op)
    return repeat(dispatcher, "all_reduce", kind, tensor, None, opts, [tensor])


def broadcast(group: Any, tensors: Any, opts: Any = None, *more: Any) -> dist.Work | None:
    """Broadcast one tensor."""
    if type(opts) is not dist.BroadcastOptions or more or len(tensors) != 1 or opts.rootTensor != 0:
        return None
    dispatcher: GroupDispatcher = group._dispatcher
    kind = dispatcher.kind(collectives.broadcast, None, opts.rootRank)
    return repeat(dispatcher, "broadcast", kind, tensors[0], None, opts, tensors)


def reduce(group: Any, tensors: Any, opts: Any = None, *more: Any) -> dist.Work | None:
    """Reduce one tensor to the root."""
    if type(opts) is not dist.ReduceOptions or more or len(tensors) != 1 or opts.rootTensor != 0:
        return None
    op = plain_name(opts.reduceOp)
    if op is None:
        return None
    dispatcher: GroupDispatcher = group._dispatcher
    kind = dispatcher.kind(collectives.reduce, op, opts.rootRank)
    return repeat(dispatcher, "reduce", kind, tensors[0], None, opts, tensors)


def all_gather_into(group: Any, out: Any, source: Any, opts: Any = None, *more: Any) -> dist.Work | None:
    """Gather the tensors of all ranks into one."""
    if getattr(opts, "asyncOp", None) is None or more:
        return None
    dispatcher: GroupDispatcher = group._dispatcher
    kind = dispatcher.kind(collectives.all_gather)
    return repeat(dispatcher, "all_gather_into_tensor", kind, out, source, opts, [out])


def reduce_scatter(group: Any, out: Any, source: Any, opts: Any = None, *more: Any) -> dist.Work | None:
    """Reduce one tensor and scatter the result."""
    if type(opts) is not dist.ReduceScatterOptions or more:
        return None
    op = plain_name(opts.reduceOp)
    if op is None:
        return None
    dispatcher: GroupDispatcher = group._dispatcher
    kind = dispatcher.kind(collectives.reduce_scatter, op)
    return repeat(dispatcher, "reduce_scatter_tensor", kind, out, source, opts, [out])


def all_to_all(
    group: Any, out: Any, source: Any, out_splits: Any = None, splits: Any = None, opts: Any = None, *more: Any
) -> dist.Work | None:
    """Exchange equal parts of two tensors."""
    if type(opts) is not dist.AllToAllOptions or more or splits or out_splits:
        return None
    dispatcher: GroupDispatcher = group._dispatcher
    if not (_has_equal_rows(out, dispatcher.comm.size) and _has_equal_rows(source, dispatcher.comm.size)):
        return None
    kind = dispatcher.kind(collectives.all_to_all)
    return repeat(dispatcher, "all_to_all_single", kind, out, source, opts, [out])


def _has_equal_rows(tensor: Any, size: int) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.dim() > 0 and tensor.shape[0] % size == 0


def all_gather(group: Any, outs: Any, sources: Any, opts: Any = None, *more: Any) -> dist.Work | None:
    """Gather one tensor of each rank into a list of tensors of the same length."""
    if getattr(opts, "asyncOp", None) is None or more or len(sources) != 1 or len(outs) != 1:
        return None
    dispatcher: GroupDispatcher = group._dispatcher
    parts, source, comm = outs[0], sources[0], dispatcher.comm
    if not isinstance(source, torch.Tensor) or not source.is_cpu or len(parts) != comm.size:
        return None
    count, dtype, nbytes = source.numel(), source.dtype, source.nbytes
    start = expected = 0
    for part in parts:
        if not isinstance(part, torch.Tensor) or not part.is_cpu or part.numel() != count or part.dtype is not dtype:
            return None
        address = address_of_values(part, nbytes)
        if not address:
            return None
        if not start:
            start = expected = address
        expected = address + nbytes if expected == address else -1
    if expected != -1:
        return _gather_in_place(dispatcher, start, list(parts), source, opts)
    memory = torch.empty(count * len(parts), dtype=dtype, device="cpu")  # not on the user's default device
    kind = dispatcher.kind(collectives.all_gather)
    return repeat(dispatcher, "all_gather", kind, memory, source, opts, list(parts), lambda: spread(parts, memory))


def _gather_in_place(
    dispatcher: GroupDispatcher, start: int, parts: Sequence[Tensor], source: Tensor, opts: Any
) -> dist.Work | None:
    """Gather into tensors that are adjacent in memory, from address ``start`` on."""
    comm, dtype, nbytes = dispatcher.comm, KNOWN.get(source.dtype), source.nbytes
    address = address_of_values(source, nbytes)
    total = nbytes * comm.size
    separate = address + nbytes <= start or start + total <= address or address == start + comm.rank * nbytes
    if not address or not separate or dtype is None or not dispatcher.is_usual():
        return None
    sizes = (source.numel(),) * comm.size
    limit_s = opts.timeout.total_seconds() if opts.timeout > NO_LIMIT else dispatcher.timeout_s
    try:
        plan = comm.plan(dispatcher.request(collectives.all_gather, Lengths(sizes, sizes), dtype))
        dispatcher.calls += 1
        work = comm.run(plan, address, start, async_op=opts.asyncOp, timeout=limit_s, keeps=(parts, source))
    except UnisonoError as error:
        dispatcher.has_raised = dispatcher.has_raised or isinstance(error, CommError)
        raise as_torch_error(error)  # noqa: B904 (it is the same error)
    if work is None:
        return FINISHED
    call = (dispatcher, "all_gather")
    return dispatcher.track(PendingWork(work, parts, None, call, dispatcher.calls, dispatcher.order))
