"""Calls with several tensors per rank, and with torch's argument names, match Gloo."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

from torch_ranks import run_ranks  # noqa: E402

OPS = ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")


def group_of(backend):
    group = dist.group.WORLD
    return group if backend == "unisono" else group._get_backend(torch.device("cpu"))


def several_tensors(backend):
    group, rank, size = group_of(backend), dist.get_rank(), dist.get_world_size()
    found = []
    for name in OPS:
        opts = dist.AllreduceOptions()
        opts.reduceOp = getattr(dist.ReduceOp, name)
        tensors = [torch.tensor([rank * 2 + 1, 3]), torch.tensor([[rank + 5, 6]])[0], torch.tensor([4, 9, 7])[:2]]
        group.allreduce(tensors, opts).wait()
        found.append((name, [tensor.tolist() for tensor in tensors]))
    for place in range(2):
        opts = dist.BroadcastOptions()
        opts.rootRank, opts.rootTensor = 1, place
        tensors = [torch.tensor([rank * 10.0]), torch.tensor([rank * 10.0 + 1])]
        group.broadcast(tensors, opts).wait()
        found.append(("broadcast", [tensor.tolist() for tensor in tensors]))
    sources = [torch.tensor([rank * 2]), torch.tensor([rank * 2 + 1])]
    outs = [[torch.tensor([-1]) for _ in range(2 * size)] for _ in range(2)]
    group.allgather(outs, sources).wait()
    found.append(("all_gather", [[out.tolist() for out in parts] for parts in outs]))
    sparse = [torch.sparse_coo_tensor([[rank]], [1.0 + place], (4,)) for place in range(2)]
    group.allreduce(sparse).wait()
    found.append(("sparse", [tensor.to_dense().tolist() for tensor in sparse]))
    return found


@pytest.mark.parametrize("size", [2, 3])
def test_several_tensors_of_a_rank_are_treated_like_tensors_of_several_ranks(size):
    assert run_ranks(several_tensors, size, "unisono") == run_ranks(several_tensors, size, "gloo", backend="gloo")


def different_tensors():
    group = dist.group.WORLD
    words = []
    for tensors in ([], [torch.ones(2), torch.ones(3)], [torch.ones(2), torch.ones(2, dtype=torch.float64)]):
        with pytest.raises(RuntimeError) as caught:
            group.allreduce(tensors)
        words.append(str(caught.value))
    return words


def test_several_tensors_must_have_the_same_shape_and_dtype():
    none, shape, kind = run_ranks(different_tensors, 1)[0]
    assert "requires non-empty tensor list" in none
    assert "[3]; expected [2]" in shape
    assert "torch.float64; expected torch.float32" in kind


def named_arguments():
    group, rank, size = dist.group.WORLD, dist.get_rank(), dist.get_world_size()
    x = torch.tensor([rank + 1.0])
    group.broadcast(x, root=1).wait()
    y = torch.tensor([rank + 1.0])
    group.allreduce(tensors=[y], op=dist.ReduceOp.MAX).wait()
    outs = [torch.zeros(1) for _ in range(size)]
    group.allgather(output_tensors=[outs], input_tensors=[torch.tensor([float(rank)])]).wait()
    z = torch.tensor([rank + 1.0])
    group.reduce(tensor=z, root=0, op=dist.ReduceOp.SUM, timeout=timedelta(seconds=20)).wait()
    return x.item(), y.item(), [out.item() for out in outs], z.item() if rank == 0 else None


def test_arguments_can_be_passed_by_the_names_of_torch():
    assert run_ranks(named_arguments, 2) == [(2.0, 2.0, [0.0, 1.0], 3.0), (2.0, 2.0, [0.0, 1.0], None)]


def many_futures():
    """Return the number of threads that wait for 600 calls, none of which can complete before the count."""
    group = dist.group.WORLD
    other = 1 - dist.get_rank()
    tensors = [torch.tensor([float(number)]) for number in range(600)]
    if other == 0:
        dist.recv(torch.ones(1), other)  # until then the calls of rank 0 wait; those of rank 1 complete immediately
    before = threading.active_count()
    futures = [group.allreduce([tensor]).get_future() for tensor in tensors]
    threads = threading.active_count() - before if other == 1 else None
    if other == 1:
        dist.send(torch.ones(1), other)
    values = [future.wait()[0].item() for future in futures]
    return threads, values == [2.0 * number for number in range(600)]


def test_hundreds_of_pending_futures_use_few_threads():
    (threads, first_is_right), (_, second_is_right) = run_ranks(many_futures, 2)
    assert threads <= 2
    assert first_is_right
    assert second_is_right


def options_with_timeout():
    group = dist.group.WORLD
    before = group.options._timeout
    group._set_default_timeout(timedelta(seconds=23))
    return before, group.options._timeout, group._get_backend(torch.device("cpu")).options._timeout


def test_options_expose_the_timeout_like_those_of_gloo():
    before, after, of_backend = run_ranks(options_with_timeout, 1)[0]
    assert before > timedelta(seconds=1)
    assert after == of_backend == timedelta(seconds=23)


def lists_of_wrong_lengths():
    group, one = dist.group.WORLD, torch.ones(1)
    opts = dist.GatherOptions()
    opts.rootRank = group.rank()
    away = dist.GatherOptions()
    away.rootRank = 1 - group.rank()
    root = dist.ScatterOptions()
    root.rootRank = group.rank()
    other = dist.ScatterOptions()
    other.rootRank = 1 - group.rank()
    calls = [
        lambda: group.gather([], [], opts), lambda: group.gather([], [one, one], opts),
        lambda: group.gather([], [one], opts), lambda: group.gather([[one] * 2] * 2, [one], opts),
        lambda: group.gather([[one] * 2], [one], away),
        lambda: group.scatter([], [], root), lambda: group.scatter([one, one], [], root),
        lambda: group.scatter([one], [], root), lambda: group.scatter([one], [[one] * 2] * 2, root),
        lambda: group.scatter([one], [[one] * 2], other), lambda: group.reduce([one, one], dist.ReduceOptions()),
        lambda: group.allgather([], []), lambda: group.allgather([], [one]),
        lambda: group.allgather([[one] * 2] * 2, [one]), lambda: group.allreduce_coalesced([]),
    ]  # fmt: skip
    words = []
    for call in calls:
        with pytest.raises(RuntimeError) as caught:
            call()
        words.append("requires" in str(caught.value))
    return words


def test_lists_of_wrong_lengths_raise_the_error_class_of_torch():
    assert run_ranks(lists_of_wrong_lengths, 2) == [[True] * 15] * 2
