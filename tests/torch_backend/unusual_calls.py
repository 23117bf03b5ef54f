"""Every call of torch.distributed with its expected result, for the tests on unusual tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

Tensor = torch.Tensor
Tensors = list[Tensor]
SHAPE = (2, 3)


class RankAndSize(NamedTuple):
    rank: int
    size: int

    @property
    def root(self) -> int:
        return self.size - 1


class Case(NamedTuple):
    """A call. ``given``: shapes of the inputs of a rank; ``got``: shapes of its outputs, None: in place."""

    name: str
    run: Callable[[RankAndSize, Tensors, Tensors, bool], None]
    given: Callable[[RankAndSize], Sequence[Sequence[int]]]
    got: Callable[[RankAndSize], Sequence[Sequence[int]]] | None
    wanted: Callable[[RankAndSize, Sequence[Tensors]], Tensors]  # from the inputs of all ranks
    adds: bool = False


def _wait(work: Any) -> None:
    if work is not None:
        work.wait()


def total(parts: Sequence[Tensor]) -> Tensor:
    first = parts[0]
    wide = torch.complex128 if first.is_complex() else torch.float64
    return sum((part.to(wide) for part in parts[1:]), first.to(wide)).to(first.dtype)


def _one(position: RankAndSize) -> Sequence[Sequence[int]]:
    return [SHAPE]


def _two(position: RankAndSize) -> Sequence[Sequence[int]]:
    return [SHAPE, (4,)]


def _each(position: RankAndSize) -> Sequence[Sequence[int]]:
    return [SHAPE] * position.size


def _whole(position: RankAndSize) -> Sequence[Sequence[int]]:
    return [(position.size * SHAPE[0], SHAPE[1])]


def _root_only(position: RankAndSize) -> Sequence[Sequence[int]]:
    return _each(position) if position.rank == position.root else []


def _rows(tensor: Tensor, position: RankAndSize) -> Tensor:
    """Return the part of a whole tensor that belongs to a rank."""
    return tensor[position.rank * SHAPE[0] : (position.rank + 1) * SHAPE[0]]


# ---- in place ----------------------------------------------------------------------------------------------------


def _all_reduce(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    _wait(dist.all_reduce(given[0], async_op=later))


def _reduce(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    _wait(dist.reduce(given[0], p.root, async_op=later))


def _broadcast(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    _wait(dist.broadcast(given[0], p.root, async_op=later))


def _all_reduce_coalesced(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    _wait(dist.all_reduce_coalesced(given, async_op=later))


def _all_reduce_managed(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    with dist._coalescing_manager(async_ops=later) as manager:
        for tensor in given:
            dist.all_reduce(tensor)
    if later:
        manager.wait()


# ---- inputs and outputs --------------------------------------------------------------------------------------------


def _all_gather(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    _wait(dist.all_gather(got, given[0], async_op=later))


def _all_gather_into(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    _wait(dist.all_gather_into_tensor(got[0], given[0], async_op=later))


def _all_gather_coalesced(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    lists = [got[2 * rank : 2 * rank + 2] for rank in range(p.size)]
    work = dist.all_gather_coalesced(lists, given, async_op=later)
    _wait(work if later else None)


def _all_gather_managed(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    with dist._coalescing_manager(async_ops=later) as manager:
        for out, tensor in zip(got, given, strict=True):
            dist.all_gather_into_tensor(out, tensor)
    if later:
        manager.wait()


def _gather(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    _wait(dist.gather(given[0], got if p.rank == p.root else None, p.root, async_op=later))


def _scatter(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    _wait(dist.scatter(got[0], given if p.rank == p.root else None, p.root, async_op=later))


def _reduce_scatter(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    _wait(dist.reduce_scatter(got[0], given, async_op=later))


def _reduce_scatter_tensor(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    _wait(dist.reduce_scatter_tensor(got[0], given[0], async_op=later))


def _reduce_scatter_managed(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    with dist._coalescing_manager(async_ops=later) as manager:
        for out, tensor in zip(got, given, strict=True):
            dist.reduce_scatter_tensor(out, tensor)
    if later:
        manager.wait()


def _all_to_all(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    _wait(dist.all_to_all(got, given, async_op=later))


def _all_to_all_single(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    _wait(dist.all_to_all_single(got[0], given[0], async_op=later))


def _all_to_all_uneven(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    rows = [rank + 1 for rank in range(p.size)]  # to rank r go r + 1 rows
    _wait(dist.all_to_all_single(got[0], given[0], [p.rank + 1] * p.size, rows, async_op=later))


def _ring(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    if p.size == 1:
        _written(given[0], got[0])
        return
    right, left = (p.rank + 1) % p.size, (p.rank - 1) % p.size
    if later:
        works = [dist.isend(given[0], right), dist.irecv(got[0], left)]
    else:
        works = dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, given[0], right), dist.P2POp(dist.irecv, got[0], left)]
        )
    for work in works:
        work.wait()


# ---- methods of groups, without the checks of torch.distributed --------------------------------------------------


def _group_allreduce(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    options = dist.AllreduceOptions()
    options.asyncOp = later
    dist.group.WORLD.allreduce([given[0]], options).wait()


def _group_broadcast(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    options = dist.BroadcastOptions()
    options.rootRank, options.asyncOp = p.root, later
    dist.group.WORLD.broadcast([given[0]], options).wait()


def _group_allgather(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    dist.group.WORLD.allgather([got], [given[0]]).wait()


def _group_alltoall_base(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    dist.group.WORLD.alltoall_base(got[0], given[0], [], []).wait()


def _group_scatter(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    options = dist.ScatterOptions()
    options.rootRank = p.root
    dist.group.WORLD.scatter([got[0]], [given] if p.rank == p.root else [], options).wait()


def _group_ring(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    if p.size == 1:
        _written(given[0], got[0])
        return
    right, left = (p.rank + 1) % p.size, (p.rank - 1) % p.size
    for work in [dist.group.WORLD.send([given[0]], right, 7), dist.group.WORLD.recv([got[0]], left, 7)]:
        work.wait()


# ---- functional ----------------------------------------------------------------------------------------------------


def _written(result: Tensor, out: Tensor) -> None:
    with torch.inference_mode():
        out.copy_(functional.wait_tensor(result) if isinstance(result, functional.AsyncCollectiveTensor) else result)


def _functional_all_reduce(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    _written(functional.all_reduce(given[0].detach(), "sum", dist.group.WORLD), got[0])


def _functional_all_gather(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    _written(functional.all_gather_tensor(given[0].detach(), 0, dist.group.WORLD), got[0])


def _functional_reduce_scatter(p: RankAndSize, given: Tensors, got: Tensors, later: bool) -> None:
    _written(functional.reduce_scatter_tensor(given[0].detach(), "sum", 0, dist.group.WORLD), got[0])


CASES = (
    Case("all_reduce", _all_reduce, _one, None, lambda p, ranks: [total([r[0] for r in ranks])], True),
    Case(
        "reduce", _reduce, _one, None,
        lambda p, ranks: [total([r[0] for r in ranks]) if p.rank == p.root else ranks[p.rank][0]], True,
    ),
    Case("broadcast", _broadcast, _one, None, lambda p, ranks: [ranks[p.root][0]]),
    Case(
        "all_reduce_coalesced", _all_reduce_coalesced, _two, None,
        lambda p, ranks: [total([r[i] for r in ranks]) for i in range(2)], True,
    ),
    Case(
        "all_reduce, managed", _all_reduce_managed, _two, None,
        lambda p, ranks: [total([r[i] for r in ranks]) for i in range(2)], True,
    ),
    Case("all_gather", _all_gather, _one, _each, lambda p, ranks: [r[0] for r in ranks]),
    Case(
        "all_gather_into_tensor", _all_gather_into, _one, _whole,
        lambda p, ranks: [torch.cat([r[0] for r in ranks])],
    ),
    Case(
        "all_gather_coalesced", _all_gather_coalesced, _two, lambda p: list(_two(p)) * p.size,
        lambda p, ranks: [tensor for r in ranks for tensor in r],
    ),
    Case(
        "all_gather_into_tensor, managed", _all_gather_managed, _two, lambda p: [*_whole(p), (p.size * 4,)],
        lambda p, ranks: [torch.cat([r[0] for r in ranks]), torch.cat([r[1] for r in ranks])],
    ),
    Case(
        "gather", _gather, _one, _root_only, lambda p, ranks: [r[0] for r in ranks] if p.rank == p.root else [],
    ),
    Case("scatter", _scatter, _root_only, _one, lambda p, ranks: [ranks[p.root][p.rank]]),
    Case(
        "reduce_scatter", _reduce_scatter, _each, _one, lambda p, ranks: [total([r[p.rank] for r in ranks])], True
    ),
    Case(
        "reduce_scatter_tensor", _reduce_scatter_tensor, _whole, _one,
        lambda p, ranks: [total([_rows(r[0], p) for r in ranks])], True,
    ),
    Case(
        "reduce_scatter_tensor, managed", _reduce_scatter_managed, lambda p: [*_whole(p), (p.size * 4,)], _two,
        lambda p, ranks: [
            total([_rows(r[0], p) for r in ranks]), total([r[1][4 * p.rank : 4 * p.rank + 4] for r in ranks])
        ], True,
    ),
    Case("all_to_all", _all_to_all, _each, _each, lambda p, ranks: [r[p.rank] for r in ranks]),
    Case(
        "all_to_all_single", _all_to_all_single, _whole, _whole,
        lambda p, ranks: [torch.cat([_rows(r[0], p) for r in ranks])],
    ),
    Case(
        "all_to_all_single, uneven", _all_to_all_uneven, lambda p: [(p.size * (p.size + 1) // 2, 3)],
        lambda p: [((p.rank + 1) * p.size, 3)],
        lambda p, ranks: [
            torch.cat([r[0][p.rank * (p.rank + 1) // 2 :][: p.rank + 1] for r in ranks])
        ],
    ),
    Case(
        "group.allreduce", _group_allreduce, _one, None, lambda p, ranks: [total([r[0] for r in ranks])], True
    ),
    Case("group.broadcast", _group_broadcast, _one, None, lambda p, ranks: [ranks[p.root][0]]),
    Case("group.allgather", _group_allgather, _one, _each, lambda p, ranks: [r[0] for r in ranks]),
    Case(
        "group.alltoall_base", _group_alltoall_base, _whole, _whole,
        lambda p, ranks: [torch.cat([_rows(r[0], p) for r in ranks])],
    ),
    Case("group.scatter", _group_scatter, _root_only, _one, lambda p, ranks: [ranks[p.root][p.rank]]),
    Case("group.send and recv", _group_ring, _one, _one, lambda p, ranks: [ranks[(p.rank - 1) % p.size][0]]),
    Case("send and recv", _ring, _one, _one, lambda p, ranks: [ranks[(p.rank - 1) % p.size][0]]),
    Case(
        "functional all_reduce", _functional_all_reduce, _one, _one,
        lambda p, ranks: [total([r[0] for r in ranks])], True,
    ),
    Case(
        "functional all_gather", _functional_all_gather, _one, _whole,
        lambda p, ranks: [torch.cat([r[0] for r in ranks])],
    ),
    Case(
        "functional reduce_scatter", _functional_reduce_scatter, _whole, _one,
        lambda p, ranks: [total([_rows(r[0], p) for r in ranks])], True,
    ),
)  # fmt: skip
