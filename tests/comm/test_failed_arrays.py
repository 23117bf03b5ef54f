"""The contents of arrays after a call that has failed."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest

from survivors import check_collectives
from unisono.errors import CommError, UsageError
from unisono.launch.spawn import outcomes_of

LENGTH = 240_000  # divisible by the numbers of ranks; takes several passes
CALLS = {
    "reduce": lambda comm, x, out: comm.reduce(x, root=0) if comm.rank else comm.reduce(out, root=0),
    "all_gather": lambda comm, x, out: comm.all_gather(np.empty(comm.size * LENGTH), x),
    "reduce_scatter": lambda comm, x, out: comm.reduce_scatter(out[: LENGTH // comm.size], x),
    "all_to_all": lambda comm, x, out: comm.all_to_all(out, x),
    "gather": lambda comm, x, out: comm.gather(np.empty(comm.size * LENGTH) if comm.rank == 0 else None, x),
    "scatter": lambda comm, x, out: comm.scatter(out[: LENGTH // comm.size], x if comm.rank == 0 else None),
    "broadcast": lambda comm, x, out: comm.broadcast(x if comm.rank == 0 else out),
    "send and recv": lambda comm, x, out: exchange(comm, x, out),
}


def exchange(comm, x, out):
    work = comm.send(x, dst=(comm.rank + 1) % comm.size, async_op=True)
    comm.recv(out, src=(comm.rank - 1) % comm.size)
    work.wait()


def contents(rank):
    return np.random.default_rng(rank).random(LENGTH)


def fail_in_the_middle(comm, name, victim):
    x, out = contents(comm.rank), np.empty(LENGTH)
    if comm.rank == victim:
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGKILL)).start()
    try:
        while True:
            CALLS[name](comm, x, out)
    except CommError:
        assert np.array_equal(x, contents(comm.rank))
        check_collectives(comm.shrink())
        return True


@pytest.mark.parametrize("name", CALLS)
def test_an_array_that_is_only_an_input_is_unchanged_after_a_failed_call(name):
    outcomes = outcomes_of(fail_in_the_middle, 3, name, 2, patience_s=30.0)
    assert [outcome.value for outcome in outcomes[:2]] == [True, True], [each.story for each in outcomes]


def restore_after_failure(comm, victim, async_op):
    if comm.rank == victim:
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGKILL)).start()
    x = contents(comm.rank)
    before = x.copy()
    while True:
        before[:] = x
        try:
            work = comm.all_reduce(x, op="avg", on_failure="restore", async_op=async_op)
            if async_op:
                work.wait()
        except CommError:
            break
    assert np.array_equal(x, before)
    smaller = comm.shrink()
    smaller.all_reduce(x, on_failure="restore")
    check_collectives(smaller)
    return True


@pytest.mark.parametrize("async_op", [False, True])
@pytest.mark.parametrize("size", [2, 5])
def test_an_all_reduce_restores_its_array_after_a_failure(size, async_op):
    outcomes = outcomes_of(restore_after_failure, size, size - 1, async_op, patience_s=30.0)
    assert [outcome.value for outcome in outcomes[:-1]] == [True] * (size - 1), [each.story for each in outcomes]


def wrong_values(comm):
    x = np.ones(3)
    with pytest.raises(UsageError, match="on_failure='undo'; expected \"restore\" or None"):
        comm.all_reduce(x, on_failure="undo")
    with pytest.raises(UsageError):
        comm.all_reduce("text", on_failure="restore")
    comm.all_reduce(x, on_failure="restore")
    assert (x == comm.size).all()


def test_wrong_values_of_on_failure_are_refused():
    assert [outcome.error for outcome in outcomes_of(wrong_values, 2)] == [None, None]
