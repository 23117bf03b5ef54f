"""Groups answer queries, can be split, and have barriers that name missing ranks."""

from __future__ import annotations

import os
import time
from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

from torch_ranks import run_ranks  # noqa: E402
from unisono.errors import CollectiveTimeout, CommError  # noqa: E402
from unisono.torch_backend import messages  # noqa: E402
from unisono.torch_backend.barriers import monitored_barrier  # noqa: E402


def answer_queries():
    group = dist.group.WORLD
    assert dist.get_backend() == "unisono"
    assert group.name() == "unisono"
    assert group.rank() == dist.get_rank()
    assert group.size() == 3
    assert dist.is_backend_available("unisono")
    assert sorted(device.type for device in group._device_types) == ["cpu", "cuda"]
    return group.group_name


def test_a_group_answers_the_queries_of_torch():
    assert len(set(run_ranks(answer_queries, 3))) == 1


def parts_of_groups():
    rank = dist.get_rank()
    world = dist.group.WORLD
    part = world.split_group([0, 2] if rank in (0, 2) else [1, 3], group_name="parts")
    x = torch.tensor([float(rank)])
    part.allreduce([x]).wait()
    rest = world.split_group([1, 2, 3], group_name="rest")
    y = torch.tensor([1.0])
    if rest is not None:
        rest.allreduce([y]).wait()
    return x.item(), part.size(), None if rest is None else y.item()


def test_split_group_makes_groups_of_some_ranks():
    assert run_ranks(parts_of_groups, 4) == [(2.0, 2, None), (4.0, 2, 3.0), (2.0, 2, 3.0), (4.0, 2, 3.0)]


def missing_at_the_barrier():
    group = dist.group.WORLD
    group.monitored_barrier(timedelta(seconds=20))
    if dist.get_rank() in (1, 3):
        return "stayed away"
    with pytest.raises(RuntimeError) as caught:
        group.monitored_barrier(timedelta(seconds=1), wait_all_ranks=True)
    error = caught.value
    return error.id, str(error), error.text("zh")


def test_a_monitored_barrier_names_the_ranks_that_are_missing():
    found = run_ranks(missing_at_the_barrier, 4)
    assert found[1] == found[3] == "stayed away"
    for rank, template in ((0, messages.BARRIER_ON_RANK_0), (2, messages.BARRIER_ON_OTHER_RANK)):
        identifier, english, chinese = found[rank]
        assert identifier == template.id
        assert "Ranks 1, 3 failed to pass monitoredBarrier in 1000 ms" in english
        assert "rank 1、3 在 1000 毫秒内没有到达 monitoredBarrier" in chinese


@pytest.mark.parametrize("content", [b"all", b"{}", b"[1]", b'{"missing": 3, "seconds": 1.0}'])
def test_a_verdict_that_rank_0_did_not_write_is_an_error(content):
    store = dist.HashStore()
    store.set("unisono/barrier/b/verdict", content)
    with pytest.raises(CommError) as caught:
        monitored_barrier(store, 1, 2, "b", 1.0, wait_all_ranks=False)
    assert caught.value.id == messages.FOREIGN_STORE_CONTENT.id


def test_a_barrier_without_time_fails_on_every_rank():
    store = dist.HashStore()
    with pytest.raises(CollectiveTimeout, match=r"^\[Rank 0\]: Rank 0 timed out in monitoredBarrier after 0 ms"):
        monitored_barrier(store, 0, 2, "b", 0.0, wait_all_ranks=False)
    with pytest.raises(CollectiveTimeout) as caught:
        monitored_barrier(store, 1, 2, "b", 0.0, wait_all_ranks=False)
    assert caught.value.parameters["problem"].id == messages.BARRIER_WITHOUT_TIME.id


def barriers_of_two_groups(path):
    rank, waited, store = int(os.environ["RANK"]), 0.0, dist.FileStore(path, 2)
    for number in range(2):
        dist.init_process_group("unisono", store=store, rank=rank, world_size=2, timeout=timedelta(seconds=30))
        if number == 1 and rank == 1:
            time.sleep(0.5)
        began = time.monotonic()
        dist.group.WORLD.monitored_barrier(timedelta(seconds=20))
        waited = time.monotonic() - began
        dist.destroy_process_group()
    return waited


def test_a_barrier_does_not_count_the_ranks_of_an_earlier_group(tmp_path):
    waited = run_ranks(barriers_of_two_groups, 2, str(tmp_path / "store"), init=False)
    assert waited[0] > 0.3
