"""Arguments that Gloo rejects are also rejected here, with the same messages and error classes.

Every call raises on its own rank, before anything is sent: the group remains usable.
"""

from __future__ import annotations

import re

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

from torch_ranks import run_ranks  # noqa: E402
from unisono.errors import UsageError  # noqa: E402


def options(kind, root=0, tensor=0):
    opts = kind()
    opts.rootRank = root
    if tensor:
        opts.rootTensor = tensor
    return opts


def invalid_calls(group):
    """Yield calls, and the text that their errors must contain."""
    size, rank = group.size(), group.rank()
    one, double, two = torch.zeros(1), torch.zeros(1, dtype=torch.float64), torch.zeros(2)
    sparse = torch.sparse_coo_tensor([[0]], [1], size=(1,))
    broadcast, reduce = dist.BroadcastOptions, dist.ReduceOptions
    gather, scatter = options(dist.GatherOptions, rank), options(dist.ScatterOptions, rank)
    product = dist.AllreduceOptions()
    product.reduceOp = dist.ReduceOp.PRODUCT
    yield lambda: group.broadcast([one], options(broadcast, -1)), "invalid root rank"
    yield lambda: group.broadcast([one], options(broadcast, size)), "invalid root rank"
    yield lambda: group.broadcast([one], options(broadcast, rank, -1)), "invalid root tensor"
    yield lambda: group.broadcast([one], options(broadcast, rank, 1)), "invalid root tensor"
    yield lambda: group.broadcast([one, one], options(broadcast, rank, 2)), "invalid root tensor"
    yield lambda: group.broadcast([], options(broadcast, rank)), "invalid root tensor"
    yield lambda: group.reduce([one], options(reduce, -1)), "invalid root rank"
    yield lambda: group.reduce([one], options(reduce, size)), "invalid root rank"
    yield lambda: group.reduce([one], options(reduce, rank, 1)), "invalid root tensor"
    for root in (-1, size):
        yield lambda root=root: group.gather([], [one], options(dist.GatherOptions, root)), "invalid root rank"
        yield lambda root=root: group.scatter([one], [], options(dist.ScatterOptions, root)), "invalid root rank"
    for count in (size - 1, size + 1):
        lists = [[one] * count]
        words = f"Incorrect output list size {count}. Output list size should be {size}"
        yield lambda lists=lists: group.gather(lists, [one], gather), words
        words = f"Incorrect input list size {count}. Input list size should be {size}"
        yield lambda lists=lists: group.scatter([one], lists, scatter), words
        yield lambda lists=lists: group.allgather(lists, [one]), "invalid output tensor list"
        words = f"input tensor list size {count} does not match world size"
        yield lambda lists=lists: group.alltoall([one] * size, lists[0]), words
        words = f"output tensor list size {count} does not match world size"
        yield lambda lists=lists: group.alltoall(lists[0], [one] * size), words
    yield lambda: group.gather([[double] * size], [one], gather), "invalid tensor type"
    yield lambda: group.gather([[two] * size], [one], gather), "invalid tensor size"
    yield lambda: group.scatter([one], [[double] * size], scatter), "invalid tensor type"
    yield lambda: group.scatter([one], [[two] * size], scatter), "invalid tensor size"
    yield lambda: group.allgather([[one, double]], [one]), "invalid tensor type"
    yield lambda: group.allgather([[two] * size], [one]), "invalid tensor size"
    yield lambda: group.alltoall([one] * size, [one, double]), "invalid tensor type"
    yield lambda: group.alltoall([one, double], [one] * size), "invalid tensor type"
    same = "input and output tensors must have the same type"
    yield lambda: group.alltoall([double] * size, [one] * size), same
    yield lambda: group.alltoall([two] * size, [one] * size), "invalid tensor size"
    yield lambda: group.allreduce([sparse], product), "unsupported reduction operation"
    yield lambda: group.allreduce_coalesced([one, double]), "tensors must all have the same type"
    yield lambda: group.allreduce_coalesced([one, sparse]), "invalid tensor layout at index 1"
    yield lambda: group.allreduce_coalesced([sparse, sparse]), "unsupported layout"
    empty = [torch.zeros(0)], [one]
    yield lambda: group.allgather_coalesced(empty, [one]), "invalid size of output tensor at index 0"
    yield lambda: group.allgather_coalesced([[one], [double]], [one]), "invalid tensor type at index 0"
    yield lambda: group.allgather_coalesced([[one]] * 3, [one]), "output lists should be equal to world size"
    yield lambda: group.allgather_coalesced([[one], []], [one]), "invalid output size"


def rejected():
    group, bad = dist.group.WORLD, []
    for number, (call, words) in enumerate(invalid_calls(group)):
        try:
            call()
            bad.append((number, words, "accepted"))
        except RuntimeError as error:
            if not isinstance(error, UsageError) or not re.search(re.escape(words), str(error)):
                bad.append((number, words, repr(error)))
    x = torch.ones(1)
    dist.all_reduce(x)
    return bad, number, x.item()


def test_arguments_that_gloo_rejects_raise_its_messages_and_the_group_remains_usable():
    for bad, last, total in run_ranks(rejected, 2):
        assert bad == []
        assert last > 35
        assert total == 2


def root_tensors():
    group, rank = dist.group.WORLD, dist.get_rank()
    tensors = [torch.full((2,), 10.0 * rank + place) for place in range(2)]
    group.broadcast(tensors, options(dist.BroadcastOptions, 1, 1)).wait()
    return [tensor.tolist() for tensor in tensors]


def test_a_broadcast_of_several_tensors_sends_the_root_tensor():
    assert run_ranks(root_tensors, 2) == [[[11.0, 11.0]] * 2] * 2
