"""An exception in a user's hook or callback: its rank raises it, and the others do not wait for ever."""

from __future__ import annotations

import time

import pytest
from fault_ranks import SOON_S, Rank, job, run

torch = pytest.importorskip("torch")
dist = torch.distributed

pytestmark = pytest.mark.usefixtures("nursery")


def fail(*_: object) -> None:
    raise ZeroDivisionError("my own mistake")


def train_with_hook(rank: Rank, where: str) -> None:
    rank.join()
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))

    def hook(state, bucket):  # DDP looks at annotations, and cannot read those that are text
        if rank.rank == 1 and where == "hook":
            rank.say("failing")
            fail()
        future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        if rank.rank == 1 and where == "then":
            rank.say("failing")
            return future.then(fail)
        return future.then(lambda done: done.value()[0])

    net.register_comm_hook(None, hook)
    for _ in range(2):
        net(torch.ones(8)).sum().backward()


@pytest.mark.parametrize("where", ["hook", "then"])
def test_an_exception_in_a_comm_hook_of_ddp_ends_its_rank_and_the_others_learn_of_it(tmp_path, where):
    with job(tmp_path, train_with_hook, 2, where) as running:
        waiting, failing = running.outcomes()
        failing.check_raised("RuntimeError" if where == "then" else "ZeroDivisionError", "my own mistake")
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
            with pytest.raises(ZeroDivisionError, match="my own mistake"):
                failed.wait()
        with pytest.raises(ZeroDivisionError):
            child.value()
    assert torch.equal(future.wait()[0], torch.full((8,), 2.0))
    dist.all_reduce(x)  # the group is as good as before
    assert torch.equal(x, torch.full((8,), 4.0))
    dist.destroy_process_group()
    return "fine"


def test_an_exception_in_a_callback_is_raised_by_who_waits_and_breaks_nothing_else(tmp_path):
    assert [outcome.value for outcome in run(tmp_path, fail_in_callback)] == ["fine", "fine"]


def fail_after_call_in_callback(rank: Rank) -> None:
    """Rank 0's callback makes a call of its own, which rank 1's never makes: it fails before."""
    rank.join(timeout_s=3.0)

    def then(done: torch.futures.Future) -> torch.Tensor:
        if rank.rank == 1:
            fail()
        dist.all_reduce(done.value()[0])
        return done.value()[0]

    future = dist.all_reduce(torch.ones(8), async_op=True).get_future().then(then)
    rank.say("waiting")
    future.wait()


def test_a_call_in_a_callback_that_fails_elsewhere_does_not_wait_for_ever(tmp_path):
    with job(tmp_path, fail_after_call_in_callback) as running:
        waiting, failing = running.outcomes()
        failing.check_raised("ZeroDivisionError")
        assert "CommError" in waiting.error, waiting.output
        assert waiting.code == 1
        assert "rank 1" in waiting.text
        assert waiting.at - running.said(0)["waiting"] < 3.0 + SOON_S


def fail_and_stay(rank: Rank) -> str:
    """The rank whose callback failed goes on, without a word to the others."""
    rank.join(timeout_s=1.0)
    if rank.rank == 1:
        with pytest.raises(ZeroDivisionError):
            dist.all_reduce(torch.ones(8), async_op=True).get_future().then(fail).wait()
        time.sleep(2.0)
        return "stayed"
    dist.all_reduce(torch.ones(8))
    dist.all_reduce(torch.ones(8))
    return "never here"


def test_a_rank_that_stays_away_after_its_mistake_is_named_when_time_is_up(tmp_path):
    waiting, staying = run(tmp_path, fail_and_stay)
    waiting.check_raised("CollectiveTimeout", "rank 1")
    assert staying.value == "stayed", staying.output


def fail_in_callback_and_stay(rank: Rank, who: int) -> str:
    rank.join(timeout_s=1.0)

    def then(done: torch.futures.Future) -> torch.Tensor:
        if rank.rank == who:
            fail()
        dist.all_reduce(done.value()[0])
        return done.value()[0]

    future = dist.all_reduce(torch.ones(8), async_op=True).get_future().then(then)
    if rank.rank == who:
        with pytest.raises(ZeroDivisionError):
            future.wait()
        time.sleep(3.0)
        return "stayed"
    future.wait()
    return "never here"


@pytest.mark.parametrize("who", [0, 1])
def test_a_rank_whose_callback_failed_and_that_says_nothing_is_named_when_time_is_up(tmp_path, who):
    outcomes = run(tmp_path, fail_in_callback_and_stay, 2, who)
    outcomes[1 - who].check_raised("CollectiveTimeout", f"rank {who}")
    assert outcomes[who].value == "stayed", outcomes[who].output
