"""If tensors of one call share memory, all inputs are read before a result is written, as on Gloo."""

from __future__ import annotations

import itertools
import warnings

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

from torch_ranks import run_ranks, same_as_gloo  # noqa: E402
from unisono.errors import UsageError  # noqa: E402

Op = dist.ReduceOp
COUNT = 12


def memory():
    return torch.arange(float(COUNT)) + 100 * dist.get_rank()


def rank_and_size():
    return dist.get_rank(), dist.get_world_size()


def coalesced(pairs):
    """Coalesce all-reduces of parts of one memory."""
    found = []
    for (a, b), (c, d), later in pairs:
        t = memory()
        work = dist.all_reduce_coalesced([t[a:b], t[c:d]], async_op=later)
        if later:
            work.wait()
        found.append(t)
    t = memory()
    dist.all_reduce_coalesced([t, t])
    found.append(t)
    t = memory()
    dist.all_reduce_coalesced([t, t, t], op=Op.MAX)
    found.append(t)
    t = memory()
    with dist._coalescing_manager():
        dist.all_reduce(t[2:8])
        dist.all_reduce(t[4:12])
    found.append(t)
    return found


PARTS = [(a, a + length) for a in range(0, 9, 4) for length in (1, 3, 4)]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_coalesced_all_reduces_read_all_inputs_first(size):
    pairs = [(*pair, later) for pair in itertools.product(PARTS, PARTS) for later in (False, True)]
    warnings.simplefilter("ignore")
    found = same_as_gloo(coalesced, size, pairs)
    assert len(found[0]) == len(pairs) + 3


def moved():
    rank, size = rank_and_size()
    found = []
    for start in range(4):
        t = memory()
        dist.all_gather([t[2 * r : 2 * r + 2] for r in range(size)], t[start : start + 2])
        found.append(t)
        t = memory()
        dist.all_gather(
            [t[r : r + 2] for r in range(size)], t[start : start + 2]
        )  # results overlap: the last one remains
        found.append(t)
        t = memory()
        dist.all_gather_into_tensor(t[: 2 * size], t[start : start + 2])
        found.append(t)
        t = memory()
        root = size - 1
        dist.gather(t[start : start + 2], [t[2 * r : 2 * r + 2] for r in range(size)] if rank == root else None, root)
        found.append(t)
        t = memory()
        dist.all_to_all([t[start + r : start + r + 2] for r in range(size)], [t[r : r + 2] for r in range(size)])
        found.append(t)
        t = memory()
        dist.reduce_scatter_tensor(t[start : start + 2], t[: 2 * size])
        found.append(t)
        t = memory()
        with dist._coalescing_manager():
            dist.all_gather_into_tensor(t[:size], t[start : start + 1])
            dist.all_gather_into_tensor(t[4 : 4 + size], t[:1])
        found.append(t)
        t = memory()
        with dist._coalescing_manager():
            dist.reduce_scatter_tensor(t[:1], t[start : start + size])
            dist.reduce_scatter_tensor(t[4:5], t[:size])
        found.append(t)
        t, u = memory(), memory()
        lists = [[t[2 * r : 2 * r + 2], u[2 * r : 2 * r + 2]] for r in range(size)]
        dist.all_gather_coalesced(lists, [t[start : start + 2], t[start : start + 2]])
        found += [t, u]
    return found


@pytest.mark.parametrize("size", [1, 2, 3])
def test_results_that_overwrite_inputs_match_gloo(size):
    warnings.simplefilter("ignore")
    assert len(same_as_gloo(moved, size)[0]) == 40


def overwritten():
    """Make calls in which Gloo may send overwritten inputs; Unisono reads all inputs first."""
    rank, size = rank_and_size()
    root = size - 1
    for start in range(4):
        t = memory()
        wanted = t.tolist()
        wanted[start : start + 2] = [100.0 * root + 2 * rank, 100.0 * root + 2 * rank + 1]
        parts = [t[2 * r : 2 * r + 2] for r in range(size)]
        dist.scatter(t[start : start + 2], parts if rank == root else None, root)
        assert t.tolist() == wanted
        t = memory()
        wanted = t.tolist()
        wanted[start : start + 2 * size] = [100.0 * r + 2 * rank + i for r in range(size) for i in range(2)]
        dist.all_to_all_single(t[start : start + 2 * size], t[: 2 * size])
        assert t.tolist() == wanted
    return True


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_scatter_and_an_all_to_all_read_their_inputs_before_they_write(size):
    assert all(run_ranks(overwritten, size))


def on_a_default_device():
    """Make calls while the default device is "meta", as when models are built; internal memory must be on the CPU."""
    rank, size = rank_and_size()
    t = torch.tensor([rank + 1.0, 2.0, 3.0, 4.0])
    u = torch.arange(6.0) + rank
    outs = [torch.zeros(4, 2)[:, 0] for _ in range(size)]
    total = torch.zeros(2)
    sparse = torch.eye(3).to_sparse()
    with torch.device("meta"):
        dist.all_gather(outs, t)
        dist.all_reduce(t[::2])
        dist.all_reduce_coalesced([u[:4], u[2:]])
        dist.all_reduce(sparse)
        dist.barrier()
        dist.reduce_scatter(total, [torch.ones(2, device="cpu") for _ in range(size)])
    assert [out[0].item() for out in outs] == [r + 1.0 for r in range(size)]
    assert t.tolist() == [size * (size + 1) / 2, 2.0, 3.0 * size, 4.0]
    assert u.tolist() == [i * size + size * (size - 1) / 2 for i in range(6)]
    assert torch.equal(sparse.to_dense(), size * torch.eye(3))
    assert total.tolist() == [size, size]
    return True


@pytest.mark.parametrize("size", [1, 2])
def test_calls_do_not_depend_on_the_default_device(size):
    assert all(run_ranks(on_a_default_device, size))


def inference():
    rank, size = rank_and_size()
    with torch.inference_mode():
        whole, strided = torch.tensor([rank, 7]), torch.arange(6)[::2]
        works = [dist.all_reduce(t, op=Op.AVG, async_op=True) for t in (whole, strided)]
        outs = [torch.zeros(2, 2)[:, 0] for _ in range(size)]
        works.append(dist.all_gather(outs, torch.tensor([rank, 5.0]), async_op=True))
    for work in works:
        work.wait()  # outside of inference mode
    assert whole.tolist() == [sum(range(size)) // size, 7]
    assert strided.tolist() == [0, 2, 4]
    assert [out.tolist() for out in outs] == [[r, 5.0] for r in range(size)]
    return True


@pytest.mark.parametrize("size", [1, 2])
def test_calls_started_in_inference_mode_can_finish_outside_of_it(size):
    assert all(run_ranks(inference, size))


def unsigned():
    rank, size = rank_and_size()
    for dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64):
        largest = torch.iinfo(dtype).max
        value = 2 * rank + 3
        for view in (slice(None), slice(None, None, 2)):
            t = torch.tensor([value, 1, 0, 5, largest // size // 2, 0], dtype=dtype)[view]
            wanted = [sum(2 * r + 3 for r in range(size)) // size, 1, 0, 5, largest // size // 2, 0][view]
            dist.all_reduce(t, op=Op.AVG)
            assert t.tolist() == wanted, (dtype, t, wanted)
        t = torch.tensor([value], dtype=dtype)
        dist.all_reduce(t, op=Op.AVG, async_op=True).wait()
        assert t.tolist() == wanted[:1]
        out = torch.zeros(2, dtype=dtype)
        dist.reduce_scatter_tensor(out, torch.full((2 * size,), value, dtype=dtype), op=Op.AVG)
        assert out.tolist() == [wanted[0]] * 2
    return True


@pytest.mark.parametrize("size", [1, 2, 3])
def test_averages_of_unsigned_integers_are_correct(size):
    assert all(run_ranks(unsigned, size))


def multiplied():
    size = dist.get_world_size()
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.int32):
        op = dist._make_nccl_premul_sum(torch.tensor([2.0]))  # a dtype that differs from the tensors
        out, t = torch.zeros(2, dtype=dtype), torch.ones(2, dtype=dtype)
        dist.reduce_scatter_tensor(out, torch.ones(2 * size, dtype=dtype), op=op)
        dist.all_reduce(t, op=op)
        assert out.tolist() == t.tolist() == [2 * size] * 2, (dtype, out, t)
    return True


@pytest.mark.parametrize("size", [1, 2])
def test_a_factor_of_a_different_dtype_does_not_change_the_dtype_of_the_message(size):
    assert all(run_ranks(multiplied, size))


def rejected_together():
    """Pass an invalid second tensor: the first is not modified, and the group still works."""
    rank, size = rank_and_size()
    good = torch.full((3,), rank + 1.0)
    for bad in (torch.ones(1).expand(3), [1, 2], torch.ones(3, device="meta")):
        before = good.clone()
        with pytest.raises((UsageError, TypeError)):
            dist.all_reduce_coalesced([good, bad])
        assert torch.equal(good, before)
        with pytest.raises((UsageError, TypeError, ValueError, RuntimeError)):
            dist.group.WORLD.allgather_into_tensor_coalesced([torch.zeros(3 * size), bad], [good, good])
        assert torch.equal(good, before)
    dist.all_reduce(good)
    return good.tolist()


@pytest.mark.parametrize("size", [1, 2])
def test_an_invalid_tensor_among_several_is_rejected_before_the_first_is_sent(size):
    assert run_ranks(rejected_together, size) == [[size * (size + 1) / 2] * 3] * size


def dropped():
    """Drop all references to the results, which are views of separate memory, adjacent or not."""
    rank, size = rank_and_size()
    works = []
    for _ in range(50):
        parts = [torch.zeros(1000) for _ in range(size)]
        works.append((dist.all_gather(parts, torch.full((1000,), rank + 1.0), async_op=True), parts[-1]))
        del parts
        dist.all_reduce(torch.ones(5000), async_op=True)  # the work is dropped too
    for work, last in works:
        work.wait()
        assert last.tolist() == [float(size)] * 1000
    return True


@pytest.mark.parametrize("size", [1, 2])
def test_calls_keep_their_tensors_alive(size):
    assert all(run_ranks(dropped, size))
