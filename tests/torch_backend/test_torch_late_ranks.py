"""Ranks that are stopped, never join, or run on another host are named by the others."""

from __future__ import annotations

import signal
import time
from datetime import timedelta

import pytest
from fault_ranks import SOON_S, Rank, job, run

torch = pytest.importorskip("torch")
dist = torch.distributed

pytestmark = pytest.mark.usefixtures("fork_server")


SHORT_S = 1.5  # the timeout of calls, once the ranks have started


def call_forever(rank: Rank, how: str) -> None:
    rank.join()
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))
    for step in range(10**9):
        if step == 3:  # the ranks may start slowly
            dist.group.WORLD.set_timeout(timedelta(seconds=SHORT_S))
            rank.report("running")
        if how == "ddp":
            net(torch.ones(8)).sum().backward()
        elif how == "async":
            dist.all_reduce(torch.ones(8), async_op=True).wait()
        else:
            dist.all_reduce(torch.ones(8))


@pytest.mark.parametrize("how", ["all_reduce", "async", "ddp"])
def test_a_stopped_rank_is_named_after_the_timeout(tmp_path, how):
    with job(tmp_path, call_forever, 2, how) as running:
        running.wait_for("running")
        stopped_at = running.kill(1, signal.SIGSTOP)
        waiting = running.outcome(0)
        if how == "ddp":
            waiting.check_raised("RuntimeError", "CollectiveTimeout", "rank 1")
        else:
            waiting.check_raised("CollectiveTimeout", "rank 1")
        assert SHORT_S / 2 < waiting.at - stopped_at < SHORT_S + SOON_S


def wait_twice(rank: Rank) -> str:
    rank.join()
    if rank.rank == 1:
        rank.report("ready")
        while not (rank.folder / "go").exists():
            time.sleep(0.01)
    x = torch.ones(8)
    work = dist.all_reduce(x, async_op=True)
    if rank.rank == 0:
        began = time.monotonic()
        for _ in range(2):
            with pytest.raises(TimeoutError, match=r"has not finished after 0\.2 s"):
                work.wait(timedelta(seconds=0.2))
        assert not work.is_completed()
        assert 0.4 <= time.monotonic() - began < 0.4 + SOON_S
        (rank.folder / "go").touch()
    work.wait(timedelta(seconds=30))
    assert torch.equal(x, torch.full((8,), 2.0))
    dist.destroy_process_group()
    return "done"


def test_a_wait_that_timed_out_can_be_repeated(tmp_path):
    assert [outcome.value for outcome in run(tmp_path, wait_twice)] == ["done", "done"]


def join_unless_absent(rank: Rank, absent: int) -> None:
    if rank.rank != absent:
        rank.report("waiting")
        rank.join(timeout_s=1.0)


@pytest.mark.parametrize("absent", [0, 1, 2])
def test_a_rank_that_never_joins_is_named_after_the_timeout(tmp_path, absent):
    with job(tmp_path, join_unless_absent, 3, absent) as running:
        for rank, outcome in enumerate(running.outcomes()):
            if rank != absent:
                outcome.check_raised(
                    "CollectiveTimeout",
                    "waiting for rank 0 of 3" if absent == 0 else f"these ranks of 3 have not connected: {absent}",
                )
                assert outcome.at - running.reported(rank)["waiting"] < 1.0 + 2 * SOON_S


def join_after_the_others_timed_out(rank: Rank) -> None:
    if rank.rank == 1:
        while not (rank.folder / "outcome-0").exists():
            time.sleep(0.01)
    rank.report("waiting")
    rank.join(timeout_s=[0.5, 60.0][rank.rank])


def test_a_rank_that_joins_after_the_others_timed_out_raises_immediately(tmp_path):
    with job(tmp_path, join_after_the_others_timed_out) as running:
        for outcome in running.outcomes():
            outcome.check_raised("CollectiveTimeout", "these ranks of 2 have not connected: 1")
        assert running.outcome(1).at - running.reported(1)["waiting"] < SOON_S


def join_repeatedly(rank: Rank) -> int:
    store = dist.FileStore(str(rank.folder / "store"), rank.size)
    for _ in range(3):
        dist.init_process_group("unisono", store=store, rank=rank.rank, world_size=rank.size)
        dist.group.WORLD.monitored_barrier()  # also uses the store
        x = torch.ones(3)
        dist.all_reduce(x)
        assert torch.equal(x, torch.full((3,), 2.0))
        dist.destroy_process_group()
    return 3


def test_a_store_can_be_used_for_several_groups_in_succession(tmp_path):
    for outcome in run(tmp_path, join_repeatedly):
        assert outcome.value == 3, outcome.output
