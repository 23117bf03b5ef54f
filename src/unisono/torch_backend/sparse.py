"""All-reduce of sparse tensors: every rank gathers the indices and values of all ranks, and adds them up."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from unisono.errors import UsageError
from unisono.torch_backend import messages
from unisono.torch_backend.work import FinishedWork


def all_reduce(group: Any, tensor: torch.Tensor, op: Any) -> dist.Work:
    """Replace the sparse tensor by the sum over all ranks; the call is over when it returns."""
    if op != dist.ReduceOp.SUM:
        name = getattr(op, "op", op)
        raise UsageError(messages.SPARSE_SUM_ONLY(op=name))
    mine = tensor.coalesce()
    size = group.getSize()
    counts = torch.zeros(size, dtype=torch.int64, device="cpu")
    blocking = _Blocking()
    group._allgather_base(counts, torch.tensor([mine._nnz()], device="cpu"), blocking)
    numbers = [int(count) for count in counts]
    indices, values = mine.indices(), mine.values()
    place = tensor.device
    index_parts = [torch.empty((indices.shape[0], count), dtype=torch.int64, device=place) for count in numbers]
    value_parts = [torch.empty((count, *values.shape[1:]), dtype=values.dtype, device=place) for count in numbers]
    group.allgather([index_parts], [indices], blocking)
    group.allgather([value_parts], [values], blocking)
    total = torch.sparse_coo_tensor(torch.cat(index_parts, 1), torch.cat(value_parts), tensor.shape).coalesce()
    with torch.no_grad():  # not detach(): the tensor that it returns has separate indices and values
        tensor.copy_(total)
    return FinishedWork([tensor])


class _Blocking:
    asyncOp = False  # noqa: N815 (torch's name)
    timeout = timedelta(0)  # that of the group
