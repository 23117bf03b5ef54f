"""The short way of frequent calls: the plan is known, and the tensors need nothing before or after.

A call goes this way if one like it (as long, of the same type, with the same root) went the long way before, which
checked it and left its plan here. What may differ from call to call is checked here: whether each tensor holds its
values in one piece of memory that exists, whether tensors overlap, and how the group is being used. Where anything is
unusual, the function returns None and the call goes the long way, which says what is wrong.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from unisono import _engine
from unisono.errors import UnisonoError
from unisono.torch_backend.dispatch import FINISHED, NO_LIMIT, GroupDispatcher
from unisono.torch_backend.futures import running_callback
from unisono.torch_backend.plan_cache import MOST_PLANS
from unisono.torch_backend.private import profiler_enabled
from unisono.torch_backend.tensors import Tensor, spread
from unisono.torch_backend.torch_errors import as_torchs

# The plan of a call, and the bytes of one input. Keys hold what the plan depends on; they start with the function
# below that uses it, except those of all-reduces.
Plans = dict[Any, tuple[_engine.Plan, int]]


def remember(plans: Plans, key: Any, plan: _engine.Plan, tensor: Tensor) -> None:
    """Keep the plan of a call, unless it is of complex numbers: their tensors may be conjugated views."""
    if not tensor.is_complex():
        if len(plans) >= MOST_PLANS:
            plans.clear()
        plans[key] = plan, tensor.nbytes


def address_of_all(tensor: Tensor, nbytes: int) -> int:
    """Return the address of a contiguous tensor; 0 if so many bytes are not there, or it has no memory at all."""
    try:
        held_bytes = tensor.untyped_storage().nbytes()
        if held_bytes == nbytes or held_bytes >= nbytes + tensor.storage_offset() * tensor.itemsize:
            return int(tensor.data_ptr())
    except RuntimeError:  # a tensor that stands for another one
        pass
    return 0


def address_of_plain(tensor: Tensor, nbytes: int) -> int:
    """Return the address of a tensor that holds its values, which are not complex, in one piece; 0 for any other."""
    if (
        tensor.is_cpu and tensor.layout is torch.strided and not tensor.is_nested and tensor.is_contiguous()
        and not tensor.is_neg()
    ):  # fmt: skip
        return address_of_all(tensor, nbytes)
    return 0


def is_usual(dispatcher: GroupDispatcher) -> bool:
    """Whether calls of the group are made at once, by the user's thread, and are not watched."""
    return (
        running_callback() is None
        and dispatcher.coalescing is None
        and not profiler_enabled()
        and not dispatcher.closed
    )


def run(dispatcher: GroupDispatcher, plan: _engine.Plan, source: int, out: int, opts: Any) -> dist.Work:
    """Make the call."""
    dispatcher.calls += 1
    limit = opts.timeout
    limit_s = limit.total_seconds() if limit > NO_LIMIT else dispatcher.timeout_s
    try:
        dispatcher.endpoint.run(plan, source, out, limit_s)
    except UnisonoError as error:
        raise as_torchs(error)  # noqa: B904 (it is the same error)
    return FINISHED


def broadcast(group: Any, tensors: Any, opts: Any = None, *more: Any) -> dist.Work | None:
    """Broadcast one tensor."""
    if type(opts) is not dist.BroadcastOptions or opts.asyncOp or more or len(tensors) != 1 or opts.rootTensor != 0:
        return None
    tensor = tensors[0]
    if not isinstance(tensor, torch.Tensor):
        return None
    found = group._quick.get((broadcast, tensor.numel(), tensor.dtype, opts.rootRank))
    if found is None or not is_usual(group._dispatcher):
        return None
    plan, nbytes = found
    place = address_of_plain(tensor, nbytes)
    return run(group._dispatcher, plan, place, place, opts) if place else None


def all_gather_into(group: Any, out: Any, source: Any, opts: Any = None, *more: Any) -> dist.Work | None:
    """Gather the tensors of all ranks into one."""
    if getattr(opts, "asyncOp", True) or more:
        return None
    if not (isinstance(out, torch.Tensor) and isinstance(source, torch.Tensor)):
        return None
    found = group._quick.get((all_gather_into, source.numel(), source.dtype, out.numel(), out.dtype))
    if found is None or not is_usual(group._dispatcher):
        return None
    (plan, nbytes), comm = found, group._dispatcher.comm
    total = nbytes * comm.size
    start, place = address_of_plain(out, total), address_of_plain(source, nbytes)
    if start and place and may_gather(start, total, place, nbytes, comm.rank):
        return run(group._dispatcher, plan, place, start, opts)
    return None


def may_gather(start: int, total: int, place: int, nbytes: int, rank: int) -> bool:
    """Whether the input of a gather lies apart from its result, or where it belongs in it."""
    return place + nbytes <= start or start + total <= place or place == start + rank * nbytes


def all_gather(group: Any, outs: Any, sources: Any, opts: Any = None, *more: Any) -> dist.Work | None:
    """Gather one tensor of each rank into a list, all of them as long."""
    if getattr(opts, "asyncOp", True) or more or len(sources) != 1 or len(outs) != 1:
        return None
    parts, source, dispatcher = outs[0], sources[0], group._dispatcher
    if not isinstance(source, torch.Tensor):
        return None
    count, dtype = source.numel(), source.dtype
    found = group._quick.get((all_gather, count, dtype, len(parts)))
    if found is None or not is_usual(dispatcher):
        return None
    plan, nbytes = found
    place = address_of_plain(source, nbytes)
    if not place:
        return None
    start = expected = 0
    for part in parts:
        if not isinstance(part, torch.Tensor) or part.numel() != count or part.dtype is not dtype:
            return None
        address = address_of_plain(part, nbytes)
        if not address:
            return None
        if not start:
            start = expected = address
        adjacent = expected == address
        expected = address + nbytes if adjacent else -1
    total = nbytes * len(parts)
    if expected != -1 and may_gather(start, total, place, nbytes, dispatcher.comm.rank):
        return run(dispatcher, plan, place, start, opts)
    memory = torch.empty(count * len(parts), dtype=dtype, device="cpu")  # not on the user's default device
    work = run(dispatcher, plan, place, memory.data_ptr(), opts)
    spread(parts, memory)
    return work


def reduce(group: Any, tensors: Any, opts: Any = None, *more: Any) -> dist.Work | None:
    """Reduce one tensor to the root."""
    if type(opts) is not dist.ReduceOptions or opts.asyncOp or more or len(tensors) != 1 or opts.rootTensor != 0:
        return None
    tensor = tensors[0]
    if not isinstance(tensor, torch.Tensor):
        return None
    found = group._quick.get((reduce, tensor.numel(), tensor.dtype, opts.rootRank, hash(opts.reduceOp)))
    if found is None or not is_usual(group._dispatcher):
        return None
    plan, nbytes = found
    place = address_of_plain(tensor, nbytes)
    return run(group._dispatcher, plan, place, place, opts) if place else None


def reduce_scatter(group: Any, out: Any, source: Any, opts: Any = None, *more: Any) -> dist.Work | None:
    """Reduce one tensor and scatter the result."""
    if type(opts) is not dist.ReduceScatterOptions or opts.asyncOp or more:
        return None
    if not (isinstance(out, torch.Tensor) and isinstance(source, torch.Tensor)):
        return None
    key = (reduce_scatter, source.numel(), source.dtype, out.numel(), out.dtype, hash(opts.reduceOp))
    return _run_apart(group, key, out, source, opts, group._dispatcher.comm.size)


def all_to_all(
    group: Any, out: Any, source: Any, out_splits: Any = None, splits: Any = None, opts: Any = None, *more: Any
) -> dist.Work | None:
    """Exchange equal parts of two tensors."""
    if type(opts) is not dist.AllToAllOptions or opts.asyncOp or more or splits or out_splits:
        return None
    if not (isinstance(out, torch.Tensor) and isinstance(source, torch.Tensor)):
        return None
    return _run_apart(group, (all_to_all, source.shape, source.dtype, out.shape, out.dtype), out, source, opts, 1)


def _run_apart(group: Any, key: Any, out: Tensor, source: Tensor, opts: Any, ratio: int) -> dist.Work | None:
    """Make a call whose input must not overlap the output, which has a part of its bytes: one in ``ratio``."""
    found = group._quick.get(key)
    if found is None or not is_usual(group._dispatcher):
        return None
    plan, nbytes = found
    out_bytes = nbytes // ratio
    start, place = address_of_plain(out, out_bytes), address_of_plain(source, nbytes)
    if start and place and (place + nbytes <= start or start + out_bytes <= place):
        return run(group._dispatcher, plan, place, start, opts)
    return None
