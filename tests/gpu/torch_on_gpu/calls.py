"""Calls on a GPU, compared with the same calls of the same group on CPU tensors.

All numbers are small integers, so that every order of additions gives the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist

from tests.gpu.torch_on_gpu.pool import here

COUNTS = (1, 7, 1000, 40_000)
NUMBERS = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32,
    torch.int64,
)  # fmt: skip
MOVED = (*NUMBERS, torch.bool, torch.complex64, torch.float8_e4m3fn)
SUM, AVG, PRODUCT, MIN, MAX = (getattr(dist.ReduceOp, name) for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX"))
BITS = (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR)


def values(shape: Any, dtype: torch.dtype, salt: int = 0) -> torch.Tensor:
    """Return small numbers that depend on the rank."""
    count = int(torch.tensor(shape).prod()) if isinstance(shape, tuple) else shape
    numbers = (torch.arange(count) * 7 + dist.get_rank() * 3 + salt) % 4 + 1
    return numbers.to(torch.float32).to(dtype).reshape(shape)


def reductions(dtype: torch.dtype) -> list[Any]:
    """Return the reductions of a type."""
    found = [SUM, PRODUCT, MIN, MAX]
    if dtype.is_floating_point:
        return [*found, AVG]
    return [*found, *BITS] if dtype in (torch.int32, torch.uint8, torch.int64) else found


def all_reduce(x: torch.Tensor, op: Any, later: bool) -> list[torch.Tensor]:
    """Reduce in place."""
    _wait(dist.all_reduce(x, op, async_op=later))
    return [x]


def reduce(x: torch.Tensor, op: Any, later: bool) -> list[torch.Tensor]:
    """Reduce to the last rank; the others' tensors stay as they are."""
    _wait(dist.reduce(x, dist.get_world_size() - 1, op, async_op=later))
    return [x]


def reduce_scatter(x: torch.Tensor, op: Any, later: bool) -> list[torch.Tensor]:
    """Reduce, and keep a part."""
    whole = x.repeat(dist.get_world_size())
    out = torch.zeros_like(x)
    _wait(dist.reduce_scatter_tensor(out, whole, op, async_op=later))
    parts = [x + index if x.dtype is not torch.bool else x for index in range(dist.get_world_size())]
    listed = torch.zeros_like(x)
    _wait(dist.reduce_scatter(listed, parts, op, async_op=later))
    return [out, listed]


def broadcast(x: torch.Tensor, later: bool) -> list[torch.Tensor]:
    """Replace by the tensor of rank 1."""
    _wait(dist.broadcast(x, 1 % dist.get_world_size(), async_op=later))
    return [x]


def all_gather(x: torch.Tensor, later: bool) -> list[torch.Tensor]:
    """Gather into one tensor, into a list, in place, and parts of unequal length."""
    size, rank = dist.get_world_size(), dist.get_rank()
    out = torch.zeros(size * x.numel(), dtype=x.dtype, device=x.device)
    _wait(dist.all_gather_into_tensor(out, x, async_op=later))
    parts = [torch.zeros_like(x) for _ in range(size)]
    _wait(dist.all_gather(parts, x, async_op=later))
    in_place = torch.zeros_like(out)
    mine = in_place[rank * x.numel() : (rank + 1) * x.numel()]
    mine.copy_(x)
    _wait(dist.all_gather_into_tensor(in_place, mine, async_op=later))
    unequal = [torch.zeros(x.numel() + index, dtype=x.dtype, device=x.device) for index in range(size)]
    given = torch.cat([x, x[:1].expand(rank)]) if rank else x
    _wait(dist.all_gather(unequal, given, async_op=later))
    return [out, *parts, in_place, *unequal]


def gather_and_scatter(x: torch.Tensor, later: bool) -> list[torch.Tensor]:
    """Gather on rank 0, and scatter from there."""
    size, rank = dist.get_world_size(), dist.get_rank()
    parts = [torch.zeros_like(x) for _ in range(size)] if rank == 0 else None
    _wait(dist.gather(x, parts, 0, async_op=later))
    out = torch.zeros_like(x)
    _wait(dist.scatter(out, list(reversed(parts)) if parts else None, 0, async_op=later))
    return [*(parts or []), out]


def all_to_all(x: torch.Tensor, later: bool) -> list[torch.Tensor]:
    """Exchange equal parts, parts of unequal length, and lists."""
    size, rank = dist.get_world_size(), dist.get_rank()
    whole = x.repeat(size)
    out = torch.zeros_like(whole)
    _wait(dist.all_to_all_single(out, whole, async_op=later))
    rows = [(rank + other) % 3 for other in range(size)]
    given = x[: min(2, x.numel())].repeat(sum(rows))
    got = torch.zeros_like(given)
    width = min(2, x.numel())
    splits = [row * width for row in rows]  # the same to a rank as from it
    _wait(dist.all_to_all_single(got, given, splits, splits, async_op=later))
    outs = [torch.zeros(1 + (rank + other) % 2, dtype=x.dtype, device=x.device) for other in range(size)]
    ins = [x[:1].repeat(1 + (rank + other) % 2) for other in range(size)]
    _wait(dist.all_to_all(outs, ins, async_op=later))
    return [out, got, *outs]


def messages(x: torch.Tensor, later: bool) -> list[torch.Tensor]:
    """Send around a ring, both ways, and between neighbours one after the other."""
    size, rank = dist.get_world_size(), dist.get_rank()
    if size == 1:
        return []
    right, left = (rank + 1) % size, (rank - 1) % size
    outs = [torch.zeros_like(x) for _ in range(3)]
    works = [dist.isend(x, right, tag=1), dist.irecv(outs[0], left, tag=1)]
    works += [dist.irecv(outs[1], right, tag=2), dist.isend(x, left, tag=2)]
    for work in works:
        work.wait()
    if rank % 2 == 0 and rank + 1 < size:
        dist.send(x, rank + 1)
        dist.recv(outs[2], rank + 1)
    elif rank % 2 == 1:
        dist.recv(outs[2], rank - 1)
        dist.send(x, rank - 1)
    return outs


def _wait(work: Any) -> None:
    if work is not None:
        work.wait()


REDUCING = (all_reduce, reduce, reduce_scatter)
MOVING = (broadcast, all_gather, gather_and_scatter, all_to_all, messages)


def _cases(dtypes: Any, counts: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
    for dtype in dtypes:
        for count in counts:
            if dtype in NUMBERS:
                for call in REDUCING:
                    for op in reductions(dtype):
                        yield call, dtype, count, (op,)
            for call in MOVING:
                yield call, dtype, count, ()


def compare(dtypes: Any, counts: Any) -> list[str]:
    """Make all calls on both devices, blocking and asynchronous; return what differs."""
    different = []
    for number, (call, dtype, count, op) in enumerate(_cases(dtypes, counts)):
        later = number % 2 == 1
        expected = call(values(count, dtype, number), *op, later)
        found = call(values(count, dtype, number).to(here()), *op, later)
        for index, (mine, right) in enumerate(zip(found, expected, strict=True)):
            if not torch.equal(_bytes(mine.cpu()), _bytes(right)):
                what = f"{call.__name__}{op} of {count} {dtype}, async_op={later}, result {index}"
                different.append(f"{what}: {mine.flatten()[:4].tolist()} and not {right.flatten()[:4].tolist()}")
    return different


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(-1).view(torch.uint8)


def unusual() -> list[str]:
    """Make calls on tensors that cannot be used as they are; return what differs."""
    different = []
    for name, make in LAYOUTS.items():
        for later in (False, True):
            results = []
            for device in (torch.device("cpu"), here()):
                x = make(values((4, 6), torch.float32).to(device))
                if name != "expanded":
                    _wait(dist.all_reduce(x, async_op=later))
                out = torch.zeros(dist.get_world_size() * x.numel(), dtype=x.dtype, device=device)
                _wait(dist.all_gather_into_tensor(out, x, async_op=later))
                results.append((x.resolve_neg().cpu().contiguous(), out.cpu()))
            if not all(torch.equal(mine, right) for right, mine in zip(*results, strict=True)):
                different.append(f"{name}, async_op={later}")
    return different


LAYOUTS = {
    "plain": lambda x: x,
    "transposed": lambda x: x.t(),
    "every second": lambda x: x[:, ::2],
    "behind others": lambda x: x.view(-1)[3:],
    "unaligned": lambda x: x.view(-1)[1:],
    "no dimension": lambda x: x.view(-1)[2],
    "empty": lambda x: x[:0],
    "expanded": lambda x: x[:1].expand(4, 6),
    "negative": lambda x: torch.complex(x, x).conj().imag,
}


def averages_of_integers() -> list[str]:
    """Average integers, which torch cannot divide in some types."""
    different = []
    for dtype in (torch.int32, torch.uint8, torch.uint16, torch.uint32, torch.uint64):
        results = []
        for device in (torch.device("cpu"), here()):
            x = torch.tensor([3, 5, 200, 65_000 % 256], dtype=torch.int64).to(dtype).to(device)
            dist.all_reduce(x, dist.ReduceOp.AVG)
            results.append(x.cpu().tolist())
        if results[0] != results[1]:
            different.append(f"{dtype}: {results[1]} and not {results[0]}")
    return different
