"""Several tensors on one rank in a single call.

torch's process groups once had one tensor for every GPU of a rank, and their methods still take lists. As in Gloo,
all tensors of all ranks take part, as if each were on a separate rank. (Coalesced calls are different: they are one
call for every tensor.)
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from unisono.errors import UsageError
from unisono.torch_backend import tensor_messages as messages
from unisono.torch_backend.cuda_work import CudaWork
from unisono.torch_backend.lists import root_of, root_tensor_of
from unisono.torch_backend.reductions import NAMES
from unisono.torch_backend.tensor_call import CallOptions, call_options_of
from unisono.torch_backend.tensors import Finish, Tensor, check, copy
from unisono.torch_backend.torch_errors import raises_torch_errors
from unisono.torch_backend.work import AllPending, FinishedWork, PendingWork

COMBINE = {
    "sum": torch.add, "prod": torch.mul, "min": torch.minimum, "max": torch.maximum,
    "band": torch.bitwise_and, "bor": torch.bitwise_or, "bxor": torch.bitwise_xor,
}  # fmt: skip


def check_alike(tensors: Sequence[Any], call: str) -> list[Tensor]:
    """Return the tensors, if they have one type and shape."""
    if not tensors:
        raise UsageError(messages.NO_TENSORS(call=call))
    first = tensors[0]
    for index, tensor in enumerate(tensors):
        if tensor.layout != first.layout:
            raise UsageError(
                messages.WRONG_LAYOUT(call=call, index=index, layout=tensor.layout, expected=first.layout)
            )
        if tensor.layout is not torch.sparse_coo:
            check(tensor, call)
        if tensor.dtype != first.dtype:
            raise UsageError(messages.WRONG_TYPE_AT(call=call, index=index, dtype=tensor.dtype, expected=first.dtype))
        if tensor.shape != first.shape:
            shapes = {"shape": list(tensor.shape), "expected": list(first.shape)}
            raise UsageError(messages.WRONG_SHAPE_AT(call=call, index=index, **shapes))
    return list(tensors)


@raises_torch_errors
def all_reduce(group: Any, tensors: Sequence[Any], op: Any, options: CallOptions) -> dist.Work:
    """Reduce all tensors of all ranks to one, and put it into each."""
    tensors = check_alike(tensors, "all_reduce")
    combine = COMBINE.get(NAMES.get(getattr(op, "op", op), ""))
    if combine is None:
        raise UsageError(messages.ONE_TENSOR_ONLY(call="all_reduce", op=op, count=len(tensors)))
    total = tensors[0].detach().clone()
    for tensor in tensors[1:]:
        total = combine(total, tensor.detach())
    work = group._all_reduce(total, op, options)
    return _then(group, work, lambda: _fill(tensors, total), tensors, "all_reduce")


def broadcast(group: Any, tensors: Sequence[Any], opts: Any, timeout: timedelta | None = None) -> dist.Work:
    """Replace all tensors of all ranks by one of the root's."""
    root = root_of(opts, group.getSize(), "broadcast", len(tensors))
    source = check_alike(tensors, "broadcast")[root_tensor_of(opts, "broadcast", len(tensors))]
    work = group._broadcast(source, root, call_options_of(opts, timeout))
    return _then(group, work, lambda: _fill(tensors, source), tensors, "broadcast")


def all_gather(group: Any, outs: Sequence[Any], sources: Sequence[Any], opts: Any) -> dist.Work:
    """Give every list of outputs the inputs of all ranks: those of rank 0, then those of rank 1, and so on."""
    sources, size = check_alike(sources, "all_gather"), group.getSize()
    count, shape = len(sources), sources[0].shape
    for index, parts in enumerate(outs):
        if len(parts) != count * size:
            raise UsageError(
                messages.WRONG_GATHERED_COUNT(
                    call="all_gather", index=index, found=len(parts), expected=count * size, each=count
                )
            )
        check_alike([sources[0], *parts], "all_gather")
    if len(outs) != count:
        raise UsageError(messages.WRONG_GATHERED_LISTS(call="all_gather", found=len(outs), expected=count))
    mine = torch.stack([source.detach() for source in sources])
    gathered = mine.new_empty((size * count, *shape))

    def finish() -> None:
        for parts in outs:
            for part, value in zip(parts, gathered, strict=True):
                copy(part, value)

    work = group._allgather_base(gathered, mine, opts)
    return _then(group, work, finish, [list(parts) for parts in outs], "all_gather")


def _fill(tensors: Sequence[Tensor], source: Tensor) -> None:
    for tensor in tensors:
        if tensor.layout is torch.sparse_coo:
            with torch.no_grad():  # not detach(): the tensor that it returns has separate indices and values
                tensor.copy_(source)
        elif tensor is not source:
            copy(tensor, source)


def _then(group: Any, work: dist.Work, finish: Finish, result: Sequence[Any], name: str) -> dist.Work:
    """Return the work of a call after which something remains to be done."""
    if isinstance(work, CudaWork):
        return work.then(finish, result)
    if not isinstance(work, PendingWork):
        finish()
        return FinishedWork(result)

    def wait_and_finish() -> None:
        work.wait()
        finish()

    return PendingWork(
        AllPending([work.pending]), result, wait_and_finish, (group._dispatcher, name), work.key, work.order
    )
