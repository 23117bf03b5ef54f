"""The fast path of frequent calls on GPU tensors: a call that equals an earlier one goes straight into its stream.

The full path checks the arguments of a call; where the tensors can be used as they are, it lets this module remember
the request (``remember``). A later call on tensors of the same length and type looks the request up. Each function
here returns None where anything is unusual; the call then takes the full path, which reports what is wrong.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from unisono import collectives
from unisono.collectives import Collective
from unisono.errors import CommError, UnisonoError
from unisono.torch_backend.dispatch import GroupDispatcher
from unisono.torch_backend.reductions import plain_name
from unisono.torch_backend.tensor_call import FINISHED, TensorCall
from unisono.torch_backend.tensors import Tensor, address_of_values
from unisono.torch_backend.torch_errors import as_torch_error
from unisono.torch_backend.work import NO_LIMIT


def remember(dispatcher: GroupDispatcher, call: TensorCall, out: Tensor, source: Tensor | None) -> None:
    """Remember the request of a call on these tensors, which are used as they are."""
    request = call.request
    count = -1 if source is None else source.numel()
    key = (request.collective, request.op, request.root, out.dtype, out.numel(), count)
    dispatcher.cuda_calls().requests[key] = request


def _repeat(
    dispatcher: GroupDispatcher, name: str, kind: tuple[Collective, str | None, int | None], out: Any, source: Any,
    opts: Any,
) -> dist.Work | None:  # fmt: skip
    calls = dispatcher.cuda
    if calls is None or not calls.streams.serves(out) or not dispatcher.is_usual():
        return None
    request = calls.requests.get((*kind, out.dtype, out.numel(), -1 if source is None else source.numel()))
    if request is None:
        return None
    out_nbytes = out.nbytes
    out_at = source_at = address_of_values(out, out_nbytes)
    if source is not None:
        nbytes = source.nbytes
        source_at = address_of_values(source, nbytes)
        in_place = kind[0] is collectives.all_gather and source_at == out_at + dispatcher.comm.rank * nbytes
        apart = source_at + nbytes <= out_at or out_at + out_nbytes <= source_at
        if source.dtype is not out.dtype or source.device != out.device or not (apart or in_place):
            return None
    if not out_at or not source_at:
        return None
    limit = opts.timeout
    limit_s = limit.total_seconds() if limit > NO_LIMIT else dispatcher.timeout_s
    dispatcher.calls += 1
    try:
        if opts.asyncOp:
            call = TensorCall(name, request, out if source is None else source, out, [out])
            return calls.call(call, False, limit_s)
        device = calls.streams.device_of(out)
        calls.enqueue(request, source_at, out_at, device, calls.streams.current_handle(device), limit_s)
    except UnisonoError as error:
        dispatcher.has_raised = dispatcher.has_raised or isinstance(error, CommError)
        raise as_torch_error(error)  # noqa: B904 (it is the same error)
    return FINISHED


def all_reduce(dispatcher: GroupDispatcher, tensor: Tensor, opts: Any) -> dist.Work | None:
    """Reduce one tensor on all ranks."""
    op = plain_name(opts.reduceOp)
    if op is None:
        return None
    return _repeat(dispatcher, "all_reduce", (collectives.all_reduce, op, None), tensor, None, opts)


def broadcast(dispatcher: GroupDispatcher, tensors: Any, opts: Any = None, *more: Any) -> dist.Work | None:
    """Broadcast one tensor."""
    if type(opts) is not dist.BroadcastOptions or more or len(tensors) != 1 or opts.rootTensor != 0:
        return None
    return _repeat(dispatcher, "broadcast", (collectives.broadcast, None, opts.rootRank), tensors[0], None, opts)


def all_gather_into(
    dispatcher: GroupDispatcher, out: Any, source: Any, opts: Any = None, *more: Any
) -> dist.Work | None:
    """Gather the tensors of all ranks into one."""
    if getattr(opts, "asyncOp", None) is None or more or not _are_tensors(out, source):
        return None
    kind = (collectives.all_gather, None, None)
    return _repeat(dispatcher, "all_gather_into_tensor", kind, out, source, opts)


def reduce_scatter(
    dispatcher: GroupDispatcher, out: Any, source: Any, opts: Any = None, *more: Any
) -> dist.Work | None:
    """Reduce one tensor and scatter the result."""
    if type(opts) is not dist.ReduceScatterOptions or more or not _are_tensors(out, source):
        return None
    op = plain_name(opts.reduceOp)
    if op is None:
        return None
    kind = (collectives.reduce_scatter, op, None)
    return _repeat(dispatcher, "reduce_scatter_tensor", kind, out, source, opts)


def all_to_all(
    dispatcher: GroupDispatcher, out: Any, source: Any, out_splits: Any = None, splits: Any = None, opts: Any = None,
    *more: Any,
) -> dist.Work | None:  # fmt: skip
    """Exchange equal parts of two tensors."""
    if type(opts) is not dist.AllToAllOptions or more or splits or out_splits or not _are_tensors(out, source):
        return None
    size = dispatcher.comm.size
    if any(tensor.dim() == 0 or tensor.shape[0] % size for tensor in (out, source)):
        return None
    return _repeat(dispatcher, "all_to_all_single", (collectives.all_to_all, None, None), out, source, opts)


def _are_tensors(*given: Any) -> bool:
    return all(isinstance(tensor, torch.Tensor) for tensor in given)
