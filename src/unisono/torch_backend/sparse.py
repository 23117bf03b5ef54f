"""All-reduce of sparse tensors: all ranks get the places and the values of all, and add them up."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from unisono.errors import UsageError
from unisono.torch_backend.work import FinishedWork


def all_reduce(group: Any, tensor: torch.Tensor, op: Any) -> dist.Work:
    """Replace the sparse tensor by the sum over all ranks; done when it returns."""
    if op != dist.ReduceOp.SUM:
        name = getattr(op, "op", op)
        raise UsageError(f"all_reduce of a sparse tensor: unsupported reduction operation {name}; expected SUM")
    mine = tensor.coalesce()
    size = group.getSize()
    counts = torch.zeros(size, dtype=torch.int64, device="cpu")
    now = _Now()
    group._allgather_base(counts, torch.tensor([mine._nnz()], device="cpu"), now)
    numbers = [int(count) for count in counts]
    indices, values = mine.indices(), mine.values()
    places = [torch.empty((indices.shape[0], count), dtype=torch.int64, device="cpu") for count in numbers]
    parts = [torch.empty((count, *values.shape[1:]), dtype=values.dtype, device="cpu") for count in numbers]
    group.allgather([places], [indices], now)
    group.allgather([parts], [values], now)
    total = torch.sparse_coo_tensor(torch.cat(places, 1), torch.cat(parts), tensor.shape).coalesce()
    with torch.no_grad():  # not detach(): what it returns has places and values of its own
        tensor.copy_(total)
    return FinishedWork([tensor])


class _Now:
    asyncOp = False  # noqa: N815 (torch's name)
    timeout = timedelta(0)  # as long as the group says
