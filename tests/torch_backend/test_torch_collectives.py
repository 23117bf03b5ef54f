"""Every collective of torch.distributed gives the expected result for all dtypes, reductions, layouts and sizes."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

from torch_ranks import run_ranks  # noqa: E402

Op = dist.ReduceOp
SIZES = (1, 2, 3, 4)
FLOATS = ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
OPS = {
    "SUM": torch.sum, "PRODUCT": torch.prod, "MIN": torch.amin, "MAX": torch.amax,
}  # fmt: skip


def place():
    return dist.get_rank(), dist.get_world_size()


def numbers(rank, shape, dtype):
    """Return small numbers, different on each rank, whose sums and products are exact in every dtype."""
    count = torch.Size(shape).numel()
    return (1 + (torch.arange(count) + rank) % 2).view(shape).to(dtype)


def reduced(name, size, shape, dtype):
    wide = torch.stack([numbers(rank, shape, torch.float64) for rank in range(size)])
    return OPS[name](wide, 0).to(dtype)


def same(found, wanted):
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert torch.equal(found.to(torch.float64), wanted.to(torch.float64)), (found, wanted)


# ---- reductions ----------------------------------------------------------------------------------------------------


def all_reduce_all():
    rank, size = place()
    for name, op in itertools.product(FLOATS + INTEGERS, OPS):
        dtype = getattr(torch, name)
        x = numbers(rank, (5, 3), dtype)
        dist.all_reduce(x, op=getattr(Op, op))
        same(x, reduced(op, size, (5, 3), dtype))
    return True


@pytest.mark.parametrize("size", SIZES)
def test_all_reduce_supports_every_dtype_and_reduction(size):
    assert all(run_ranks(all_reduce_all, size))


def other_reductions():
    rank, size = place()
    x = torch.tensor([rank + 1.0, -3.0])
    dist.all_reduce(x, op=Op.AVG)
    same(x, torch.tensor([(size + 1) / 2, -3.0]))
    x = torch.tensor([rank, -rank])
    dist.all_reduce(x, op=Op.AVG)
    total = sum(range(size))
    same(x, torch.tensor([total // size, -(total // size)]))  # towards zero
    x = torch.tensor([rank == 0, True, False])
    dist.all_reduce(x)
    assert x.tolist() == [True, True, False]
    dist.all_reduce(x, op=Op.BAND)
    assert x.tolist() == [True, True, False]
    for op, function in ((Op.BAND, int.__and__), (Op.BOR, int.__or__), (Op.BXOR, int.__xor__)):
        x = torch.tensor([5 + rank, 8])
        dist.all_reduce(x, op=op)
        wanted = [5, 8]
        for other in range(1, size):
            wanted = [function(wanted[0], 5 + other), function(wanted[1], 8)]
        assert x.tolist() == wanted
    x = torch.tensor([1 + 2j, 3j]) * (rank + 1)
    dist.all_reduce(x)
    assert torch.equal(x, torch.tensor([1 + 2j, 3j]) * (size * (size + 1) // 2))
    x = torch.ones(3)
    dist.all_reduce(x, op=dist._make_nccl_premul_sum(0.5))
    same(x, torch.full((3,), size / 2))
    return True


@pytest.mark.parametrize("size", SIZES)
def test_averages_bitwise_boolean_complex_and_scaled_reductions_are_correct(size):
    assert all(run_ranks(other_reductions, size))


def reductions_to_one_and_to_parts():
    rank, size = place()
    root = size - 1
    x = numbers(rank, (7,), torch.float32)
    dist.reduce(x, root)
    same(x, reduced("SUM", size, (7,), torch.float32) if rank == root else numbers(rank, (7,), torch.float32))
    for op in ("SUM", "MAX"):
        total = reduced(op, size, (2 * size, 3), torch.float32)
        given = numbers(rank, (2 * size, 3), torch.float32)
        out = torch.zeros(2, 3)
        dist.reduce_scatter_single(out, given, op=getattr(Op, op))
        same(out, total[2 * rank : 2 * rank + 2])
        out = torch.zeros(2, 3)
        dist.reduce_scatter(out, list(given.chunk(size)), op=getattr(Op, op))
        same(out, total[2 * rank : 2 * rank + 2])
    lists = [numbers(rank, (1 + place,), torch.int64) for place in range(size)]  # parts of different lengths
    out = torch.zeros(1 + rank, dtype=torch.int64)
    dist.reduce_scatter(out, lists)
    same(out, reduced("SUM", size, (1 + rank,), torch.int64))
    given = torch.arange(2.0 * size)
    out = given[2 * rank : 2 * rank + 2]  # in place
    wanted = out * size
    dist.reduce_scatter_single(out, given)
    same(out, wanted)
    return True


@pytest.mark.parametrize("size", SIZES)
def test_reduce_and_reduce_scatter_give_the_expected_results(size):
    assert all(run_ranks(reductions_to_one_and_to_parts, size))


# ---- moving data ---------------------------------------------------------------------------------------------------


def moves():
    rank, size = place()
    for dtype in (torch.float32, torch.bfloat16, torch.float8_e4m3fnuz, torch.complex64, torch.bool, torch.int16):
        mine = (torch.arange(6).view(2, 3) + rank).to(torch.float32).to(dtype)
        everyone = [(torch.arange(6).view(2, 3) + other).to(torch.float32).to(dtype) for other in range(size)]

        def equal(found, wanted):
            assert found.dtype == wanted.dtype
            assert found.contiguous().view(torch.uint8).tolist() == wanted.contiguous().view(torch.uint8).tolist()

        x = mine.clone()
        dist.broadcast(x, size - 1)
        equal(x, everyone[size - 1])
        outs = [torch.empty_like(mine) for _ in range(size)]
        dist.all_gather(outs, mine)
        for found, wanted in zip(outs, everyone, strict=True):
            equal(found, wanted)
        out = torch.empty(2 * size, 3, dtype=dtype)
        dist.all_gather_single(out, mine)
        equal(out, torch.cat([part.view(torch.uint8) for part in everyone]).view(dtype))
        outs = [torch.empty_like(mine) for _ in range(size)] if rank == 0 else None
        dist.gather(mine, outs, dst=0)
        for found, wanted in zip(outs or [], everyone, strict=False):
            equal(found, wanted)
        out = torch.empty_like(mine)
        dist.scatter(out, everyone if rank == 0 else None, src=0)
        equal(out, mine)
    return True


@pytest.mark.parametrize("size", SIZES)
def test_tensors_of_any_dtype_are_moved_unchanged(size):
    assert all(run_ranks(moves, size))


def exchanges():
    rank, size = place()
    given = torch.arange(2 * size).float().view(2 * size, 1) + 100 * rank
    out = torch.empty_like(given)
    dist.all_to_all_single(out, given)
    wanted = torch.cat([torch.arange(2).float().view(2, 1) + 2 * rank + 100 * other for other in range(size)])
    same(out, wanted)
    # Rank r sends r + d rows to rank d.
    splits, out_splits = [rank + other for other in range(size)], [other + rank for other in range(size)]
    rows = torch.cat([torch.full((count, 3), 10.0 * rank + other) for other, count in enumerate(splits)])
    out = torch.empty(sum(out_splits), 3)
    dist.all_to_all_single(out, rows, out_splits, splits)
    same(out, torch.cat([torch.full((count, 3), 10.0 * other + rank) for other, count in enumerate(out_splits)]))
    outs = [torch.empty(count, 3) for count in out_splits]
    dist.all_to_all(outs, list(rows.split(splits)))
    same(torch.cat(outs), out)
    return True


@pytest.mark.parametrize("size", SIZES)
def test_all_to_all_supports_equal_and_unequal_parts(size):
    assert all(run_ranks(exchanges, size))


def gathers_of_different_lengths():
    rank, size = place()
    outs = [torch.zeros(other, 2) for other in range(size)]
    dist.all_gather(outs, torch.full((rank, 2), float(rank)))
    return all(torch.equal(out, torch.full((other, 2), float(other))) for other, out in enumerate(outs))


def test_all_gather_supports_tensors_of_different_lengths():
    assert all(run_ranks(gathers_of_different_lengths, 3))


# ---- memory --------------------------------------------------------------------------------------------------------


def unusual_layouts():
    rank, size = place()
    turned = (torch.arange(12.0).view(3, 4) + rank).t()
    wanted = sum((torch.arange(12.0).view(3, 4) + other).t() for other in range(size))
    dist.all_reduce(turned)
    same(turned.contiguous(), wanted.contiguous())
    column = torch.zeros(6, 2)
    dist.broadcast(column[:, 1], 0)
    column[:, 1] = rank
    dist.broadcast(column[:, 1], size - 1)
    same(column, torch.tensor([[0.0, size - 1.0]] * 6))
    outs = list(torch.zeros(4, size).t())  # columns
    dist.all_gather(outs, torch.full((8,), float(rank))[::2])
    same(torch.stack(outs), torch.arange(float(size)).view(size, 1).expand(size, 4).contiguous())
    out = torch.zeros(2, 3).t()
    dist.reduce_scatter_single(out, torch.ones(2 * size, 3).t().contiguous().view(3 * size, 2))
    same(out.contiguous(), torch.full((3, 2), float(size)))
    leaf = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        dist.all_reduce(leaf)
    same(leaf.detach(), torch.full((3,), float(size)))
    resizable = torch.ones(4)
    dist.all_reduce(resizable)
    resizable.untyped_storage().resize_(0)  # FSDP does this; a tensor that shares memory with numpy cannot
    return True


def test_tensors_need_not_be_contiguous():
    assert all(run_ranks(unusual_layouts, 2))


def empty_tensors():
    size = dist.get_world_size()
    empty = torch.empty(0, 3)
    dist.all_reduce(empty)
    dist.broadcast(empty, 0)
    dist.all_gather([torch.empty(0, 3) for _ in range(size)], empty)
    dist.all_gather_single(torch.empty(0, 3), empty)
    dist.reduce_scatter_single(torch.empty(0, 3), empty)
    dist.all_to_all_single(torch.empty(0, 3), empty)
    dist.barrier()
    return empty.shape == (0, 3)


@pytest.mark.parametrize("size", SIZES)
def test_tensors_may_be_empty(size):
    assert all(run_ranks(empty_tensors, size))


# ---- invalid calls -------------------------------------------------------------------------------------------------


def rejected_calls():
    found = []
    for call in (
        lambda: dist.all_gather_single(torch.zeros(3), torch.zeros(2)),
        lambda: dist.reduce_scatter_single(torch.zeros(3), torch.zeros(2)),
        lambda: dist.all_to_all_single(torch.zeros(4), torch.zeros(4), [1, 1], [2, 2]),
        lambda: dist.all_reduce(torch.zeros(2, dtype=torch.bool), op=Op.AVG),
        lambda: dist.all_gather([torch.zeros(2)], torch.zeros(2)),
    ):
        with pytest.raises((ValueError, RuntimeError)) as caught:
            call()
        found.append(str(caught.value))
    x = torch.ones(1)
    dist.all_reduce(x)  # the invalid calls sent nothing: the group still works
    return found, x.item()


def test_invalid_tensors_are_rejected_before_anything_is_sent():
    for found, total in run_ranks(rejected_calls, 2):
        assert "expected 2 times as many" in found[0]
        assert "expected 2 times as many" in found[1]
        assert "output_split_sizes=[1, 1]; expected 2 numbers of rows with the sum 4" in found[2]
        assert "average of booleans" in found[3]
        assert "1 tensors as output; expected 2" in found[4]
        assert total == 2
