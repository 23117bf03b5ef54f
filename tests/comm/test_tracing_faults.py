"""Recordings of ranks that die, fail, or delay the others."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest

from stories import check_structure
from traced_calls import many_calls, record
from unisono import spawn
from unisono.errors import CollectiveTimeout, PeerLost, UsageError
from unisono.launch.spawn import outcomes_of
from unisono.tracing import read_run, slow_rank

pytestmark = pytest.mark.slow

SIZES = (2, 3, 5)


# ---- failures ----------------------------------------------------------------------------------------------------


def one_dies(comm, path):
    try:
        with comm.trace(path):
            many_calls(comm)
            if comm.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            comm.all_reduce(np.ones(1000), algorithm="ring")
    except PeerLost:
        return "lost"


@pytest.mark.parametrize("size", SIZES)
def test_the_death_of_a_rank_leaves_complete_files_of_the_others(tmp_path, size):
    path = tmp_path / "run.json"
    outcomes = outcomes_of(one_dies, size, path)
    assert [outcome.value for outcome in outcomes] == ["lost" if rank != 1 else None for rank in range(size)]
    assert not path.exists()
    parts = tmp_path / "run.json.parts"
    assert len(list(parts.iterdir())) == size - 1
    with pytest.raises(UsageError, match=f"no trace of rank 1 of {size}"):
        read_run(parts)
    (group,) = read_run(parts, missing_ok=True).communicators
    assert group.missing == [1]
    last = group.calls[-1]
    assert any(call.failed for call in last.ranks.values())
    assert all(call.whole for one in group.calls[:-1] for call in one.ranks.values())


def leaves_by_an_exception(comm, path):
    with pytest.raises(CollectiveTimeout), comm.trace(path):  # noqa: PT012
        comm.all_reduce(np.ones(3), algorithm="ring")
        if comm.rank != 0:
            comm.all_reduce(np.ones(3), algorithm="ring", timeout=0.05)
        else:
            while not comm.broken:
                time.sleep(0.001)
            comm.all_reduce(np.ones(3), algorithm="ring")


def test_a_call_that_fails_is_in_the_trace_with_the_wait_that_never_ended(tmp_path):
    path = tmp_path / "run.json"
    spawn(leaves_by_an_exception, 2, path)
    check_structure(path, whole=False)
    (group,) = read_run(path).communicators
    failed = group.calls[-1].ranks[1]
    assert failed.failed
    assert failed.waits[-1].peer == 0
    assert failed.waits[-1].ns > 40e6


def test_invalid_arguments_are_rejected_before_anything_is_recorded(pools, tmp_path):
    pools[2].call(make_mistakes, [tmp_path] * 2)
    assert list(tmp_path.iterdir()) == []


def make_mistakes(comm, folder):
    for events in (0, -1, 1.5, True, 2**40):
        with pytest.raises(UsageError, match="events="):
            comm.trace(folder / "run.json", events=events)
    with pytest.raises(UsageError, match="is a folder"):
        comm.trace(folder)
    with pytest.raises(UsageError, match="there is no folder"):
        comm.trace(folder / "no" / "run.json")
    other = comm.duplicate()
    trace = other.trace(folder / "run.json")
    other.close()
    with pytest.raises(UsageError, match="is closed"):
        trace.__enter__()


def fork_inside(comm, path):
    with comm.trace(path) as trace:
        comm.all_reduce(np.ones(3))
        child = os.fork()
        if child == 0:  # the child has inherited the block and leaves it
            trace.__exit__(None, None, None)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        return list(path.parent.rglob(f"rank-{comm.rank}.*"))


def test_a_forked_child_writes_nothing(tmp_path):
    path = tmp_path / "run.json"
    assert spawn(fork_inside, 2, path) == [[], []]
    assert len(read_run(path).communicators[0].calls) == 1


# ---- a slow rank -------------------------------------------------------------------------------------------------


def late_rank(comm, late):
    x = np.ones(20_000, np.float32)
    for _ in range(10):
        if comm.rank == late:
            time.sleep(0.06)  # much longer than the waits of ranks that share cores
        comm.all_reduce(x, algorithm="ring")


@pytest.mark.parametrize(("size", "late"), [(2, 1), (3, 2), (5, 0)])
def test_a_rank_that_enters_late_is_named(tmp_path, size, late):
    path = tmp_path / "run.json"
    spawn(record, size, path, lambda comm: late_rank(comm, late))
    check_structure(path)
    run = read_run(path)
    slow = slow_rank(run.communicators[0])
    assert slow is not None
    assert slow.rank == late
    assert slow.calls >= 6  # of 10
    assert slow.waited_ns > 0.2e9
    assert slow.late_ns > slow.slow_ns


def slow_link(comm, slow):
    x = np.ones(50_000, np.float32)
    if comm.rank == slow:
        comm.limit_rate(10e6)
    for _ in range(8):
        comm.all_reduce(x, algorithm="ring")


@pytest.mark.parametrize(("size", "slow"), [(2, 0), (3, 1)])
def test_a_rank_that_is_slow_inside_its_calls_is_named(tmp_path, size, slow):
    path = tmp_path / "run.json"
    spawn(record, size, path, lambda comm: slow_link(comm, slow))
    found = slow_rank(read_run(path).communicators[0])
    assert found is not None
    assert found.rank == slow
    assert found.slow_ns > found.late_ns
