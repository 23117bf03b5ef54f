"""An exception in a user's hook or callback is raised on its rank, and the other ranks do not hang."""

from __future__ import annotations

import time

import pytest
from fault_ranks import SOON_S, Rank, job, run

torch = pytest.importorskip("torch")
dist = torch.distributed

pytestmark = pytest.mark.usefixtures("fork_server")


def fail(*_: object) -> None:
    raise ZeroDivisionError("user error")


def train_with_hook(rank: Rank, where: str) -> None:
    rank.join()
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))

    def hook(state, bucket):  # no annotations: DDP inspects them, and cannot read strings
        if rank.rank == 1 and where == "hook":
            rank.report("failing")
            fail()
        future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        if rank.rank == 1 and where == "then":
            rank.report("failing")
            return future.then(fail)
        return future.then(lambda done: done.value()[0])

    net.register_comm_hook(None, hook)
    for _ in range(2):
        net(torch.ones(8)).sum().backward()


@pytest.mark.parametrize("where", ["hook", "then"])
def test_an_exception_in_a_comm_hook_of_ddp_is_raised_on_its_rank_and_reported_on_the_others(tmp_path, where):
    with job(tmp_path, train_with_hook, 2, where) as running:
        waiting, failing = running.outcomes()
        failing.check_raised("RuntimeError" if where == "then" else "ZeroDivisionError", "user error")
        assert "rank 1" in waiting.text, waiting.text
        assert waiting.code == 1, waiting.output


def fail_in_callback(rank: Rank) -> str:
    rank.join()
    x = torch.ones(8)
    future = dist.all_reduce(x, async_op=True).get_future()
    if rank.rank == 1:
        child = future.then(fail)
        grandchild = child.then(lambda done: done.value())
        for failed in (child, grandchild):
            with pytest.raises(ZeroDivisionError, match="user error"):
                failed.wait()
        with pytest.raises(ZeroDivisionError):
            child.value()
    assert torch.equal(future.wait()[0], torch.full((8,), 2.0))
    dist.all_reduce(x)  # the group still works
    assert torch.equal(x, torch.full((8,), 4.0))
    dist.destroy_process_group()
    return "fine"


def test_an_exception_in_a_callback_is_raised_by_wait_and_leaves_the_group_usable(tmp_path):
    assert [outcome.value for outcome in run(tmp_path, fail_in_callback)] == ["fine", "fine"]


def fail_after_call_in_callback(rank: Rank) -> None:
    """Make a call in rank 0's callback which rank 1's callback never makes, because it fails before."""
    rank.join(timeout_s=3.0)

    def then(done: torch.futures.Future) -> torch.Tensor:
        if rank.rank == 1:
            fail()
        dist.all_reduce(done.value()[0])
        return done.value()[0]

    future = dist.all_reduce(torch.ones(8), async_op=True).get_future().then(then)
    rank.report("waiting")
    future.wait()


def test_a_call_in_a_callback_raises_if_the_callback_fails_on_another_rank(tmp_path):
    with job(tmp_path, fail_after_call_in_callback) as running:
        waiting, failing = running.outcomes()
        failing.check_raised("ZeroDivisionError")
        assert "CommError" in waiting.error, waiting.output
        assert waiting.code == 1
        assert "rank 1" in waiting.text
        assert waiting.at - running.reported(0)["waiting"] < 3.0 + SOON_S


def fail_and_stay(rank: Rank) -> str:
    """Let the rank whose callback failed continue without making further calls."""
    rank.join(timeout_s=1.0)
    if rank.rank == 1:
        with pytest.raises(ZeroDivisionError):
            dist.all_reduce(torch.ones(8), async_op=True).get_future().then(fail).wait()
        time.sleep(2.0)
        return "stayed"
    dist.all_reduce(torch.ones(8))
    dist.all_reduce(torch.ones(8))
    return "unreachable"


def test_a_rank_that_stops_calling_after_an_error_is_named_after_the_timeout(tmp_path):
    waiting, staying = run(tmp_path, fail_and_stay)
    waiting.check_raised("CollectiveTimeout", "rank 1")
    assert staying.value == "stayed", staying.output


def fail_in_callback_and_stay(rank: Rank, failing_rank: int) -> str:
    rank.join(timeout_s=1.0)

    def then(done: torch.futures.Future) -> torch.Tensor:
        if rank.rank == failing_rank:
            fail()
        dist.all_reduce(done.value()[0])
        return done.value()[0]

    future = dist.all_reduce(torch.ones(8), async_op=True).get_future().then(then)
    if rank.rank == failing_rank:
        with pytest.raises(ZeroDivisionError):
            future.wait()
        time.sleep(3.0)
        return "stayed"
    future.wait()
    return "unreachable"


@pytest.mark.parametrize("failing_rank", [0, 1])
def test_a_rank_that_ignores_an_error_in_its_callback_is_named_after_the_timeout(tmp_path, failing_rank):
    outcomes = run(tmp_path, fail_in_callback_and_stay, 2, failing_rank)
    outcomes[1 - failing_rank].check_raised("CollectiveTimeout", f"rank {failing_rank}")
    assert outcomes[failing_rank].value == "stayed", outcomes[failing_rank].output
