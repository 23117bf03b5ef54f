"""Shrinking returns memory and descriptors; wrong uses of it are refused."""

from __future__ import annotations

import os

import numpy as np
import pytest

import unisono
from comm.test_shrink import call_until_it_fails, die, survivors_of
from pretend_hosts import run_on_hosts
from unisono.errors import UsageError

# ---- resources --------------------------------------------------------------------------------------------------


def blocks_in_use(comm):
    return os.fstat(comm._link.resources.descriptor).st_blocks * 512


def shrink_many_times(comm):
    used = []
    for _ in range(6):
        comm.all_reduce(np.ones(10**6))  # uses its staging area
        before = comm
        comm = comm.shrink()
        comm.barrier()
        used.append(blocks_in_use(comm))
        del before
    descriptors = len(os.listdir("/proc/self/fd"))
    for _ in range(6):
        comm = comm.shrink()
    comm.barrier()
    assert len(os.listdir("/proc/self/fd")) <= descriptors
    return used


def test_the_memory_of_old_communicators_is_returned():
    used = survivors_of(shrink_many_times, 3, victims=[])[0]
    assert used[-1] <= used[1] + 6 * 16 * 4096, used  # the control block and the boards of each stay


def lose_with_memory(comm, victim):
    comm.all_reduce(np.ones(10**6))
    if comm.rank == victim:
        die()
    call_until_it_fails(comm)
    full = blocks_in_use(comm)
    smaller = comm.shrink()
    smaller.barrier()
    return full, blocks_in_use(smaller)


def test_the_memory_is_returned_although_the_lost_rank_never_closes_it():
    full, left = survivors_of(lose_with_memory, 3, 2, victims=[2])[0]
    assert left < full / 2


# ---- wrong uses -------------------------------------------------------------------------------------------------


def misuse(comm):
    with pytest.raises(UsageError, match="shrink: timeout=0"):
        comm.shrink(timeout=0)
    smaller = comm.shrink()
    with pytest.raises(UsageError, match="this communicator is closed"):
        comm.shrink()
    smaller.close()


def test_wrong_uses_are_refused():
    survivors_of(misuse, 2, victims=[])


def fail_after_shrink(replaced):
    with unisono.connect() as comm:
        replaced.append(comm.shrink())
        raise ZeroDivisionError


def test_a_with_block_closes_the_communicator_that_replaces_its_own():
    with unisono.connect() as comm:
        smaller = comm.shrink()
        again = smaller.shrink()
        assert not again.closed
    assert again.closed
    replaced = []
    with pytest.raises(ZeroDivisionError):
        fail_after_shrink(replaced)
    assert replaced[0].closed


def refuse_on_hosts(comm):
    with pytest.raises(UsageError, match=r"shrink: this job is on several hosts \(2 in this communicator\)"):
        comm.shrink()
    with pytest.raises(UsageError, match="grow: this job is on several hosts"):
        comm.grow()
    x = np.ones(3)
    comm.all_reduce(x)
    return float(x[0])


def test_jobs_on_several_hosts_are_refused_and_stay_usable():
    assert run_on_hosts(refuse_on_hosts, ["a", "a", "b"]) == [3.0] * 3
