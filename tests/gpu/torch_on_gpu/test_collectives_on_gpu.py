"""Every call gives on a GPU what it gives on the CPU."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402

from tests.gpu.torch_on_gpu import calls  # noqa: E402
from tests.gpu.torch_on_gpu.pool import here  # noqa: E402


def test_every_call_works_with_float32_of_every_length(ranks):
    assert ranks.run(calls.compare, (torch.float32,), calls.COUNTS) == [[]] * ranks.size


def test_every_call_works_with_every_dtype(ranks):
    others = [dtype for dtype in calls.MOVED if dtype is not torch.float32]
    assert ranks.run(calls.compare, others, (257,)) == [[]] * ranks.size


def test_tensors_in_unusual_memory_work(ranks):
    assert ranks.run(calls.unusual) == [[]] * ranks.size


def test_integers_are_averaged(ranks):
    assert ranks.run(calls.averages_of_integers) == [[]] * ranks.size


def objects():
    size, rank = dist.get_world_size(), dist.get_rank()
    found = [None] * size
    dist.all_gather_object(found, {"rank": rank, "text": "x" * (100 * rank)})
    sent = [("from 0", 1.5)] if rank == 0 else [None]
    dist.broadcast_object_list(sent, 0, device=here())
    dist.barrier()
    return [each["rank"] for each in found], [len(each["text"]) for each in found], sent


def test_objects_can_be_exchanged(ranks):
    numbers = list(range(ranks.size))
    for found in ranks.run(objects):
        assert found == (numbers, [100 * number for number in numbers], [("from 0", 1.5)])


def coalesced():
    size = dist.get_world_size()
    tensors = [torch.ones(count, device=here()) for count in (3, 5, 70_000)]
    with dist._coalescing_manager(device=here(), async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    outs = [torch.zeros(size * count, device=here()) for count in (3, 5)]
    with dist._coalescing_manager(device=here(), async_ops=True) as manager:
        for out, count in zip(outs, (3, 5), strict=True):
            dist.all_gather_into_tensor(out, torch.full((count,), float(dist.get_rank()), device=here()))
    manager.wait()
    return [set(tensor.tolist()) for tensor in tensors], [out.tolist() for out in outs]


def test_coalesced_calls_work(ranks):
    for sums, gathered in ranks.run(coalesced):
        assert sums == [{float(ranks.size)}] * 3
        assert gathered == [[float(r) for r in range(ranks.size) for _ in range(count)] for count in (3, 5)]


def batches():
    """Exchange tensors with all ranks, in an order that differs from rank to rank."""
    size, rank = dist.get_world_size(), dist.get_rank()
    others = [(rank + step) % size for step in range(1, size)]
    x = torch.full((1000,), float(rank), device=here())
    outs = {other: torch.zeros(1000, device=here()) for other in others}
    for _ in range(3):
        ops = [dist.P2POp(dist.isend, x, other) for other in others]
        ops += [dist.P2POp(dist.irecv, outs[other], other) for other in reversed(others)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
    return all(bool((out == other).all()) for other, out in outs.items())


def test_batches_of_messages_work(ranks):
    assert ranks.run(batches) == [True] * ranks.size


def groups():
    size, rank = dist.get_world_size(), dist.get_rank()
    pairs = [dist.new_group([first, first + 1]) for first in range(0, size, 2)]
    x = torch.full((100,), float(rank), device=here())
    dist.all_reduce(x, group=pairs[rank // 2])
    mesh = init_device_mesh(here().type, (size // 2, 2), mesh_dim_names=("rows", "columns"))
    y = torch.full((100,), float(rank), device=here())
    work = dist.all_reduce(y, group=mesh.get_group("rows"), async_op=True)
    work.wait()
    found = x[0].item(), y[0].item()
    for pair in pairs:
        if pair is not dist.GroupMember.NON_GROUP_MEMBER:
            dist.destroy_process_group(pair)
    return found


def test_groups_and_meshes_work(ranks):
    size = ranks.size
    for rank, (pair, row) in enumerate(ranks.run(groups)):
        assert pair == 2 * (rank // 2 * 2) + 1
        assert row == sum(other for other in range(size) if other % 2 == rank % 2)
