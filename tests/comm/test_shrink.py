"""After a fault, the ranks that are left continue with a smaller communicator."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

from launching import state_of, wait_until
from survivors import check_collectives
from unisono.errors import Aborted, CollectiveTimeout, CommError, Excluded, PeerLost
from unisono.launch.spawn import outcomes_of

PATIENCE_S = 30.0


def survivors_of(function, size, *args, victims, timeout=60.0):
    """Return the values of all ranks but the victims, which end before they return; the others must not fail."""
    outcomes = outcomes_of(function, size, *args, timeout=timeout, patience_s=PATIENCE_S)
    for rank, outcome in enumerate(outcomes):
        assert rank in victims or outcome.error is None, f"rank {rank}:\n{outcome.story}"
        assert rank not in victims or outcome.value is None, f"rank {rank} was to be lost"
    return [outcome.value for rank, outcome in enumerate(outcomes) if rank not in victims]


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def call_until_it_fails(comm):
    """Make calls until one fails; return its error."""
    x = np.ones(5000)
    while True:
        try:
            comm.all_reduce(x)
        except CommError as error:
            return error


# ---- ranks that die ---------------------------------------------------------------------------------------------


def lose(comm, victims):
    try:
        check_collectives(comm)
        if comm.rank in victims:
            die()
        error = call_until_it_fails(comm)
    except CommError as failed:  # a victim may have left the last call, and died, before this rank has left it
        error = failed
    assert isinstance(error, PeerLost)
    assert error.rank in victims
    smaller = comm.shrink()
    assert comm.closed
    left = tuple(rank for rank in range(comm.size) if rank not in victims)
    assert smaller.parent_ranks == smaller.job_ranks == left
    assert (smaller.rank, smaller.size) == (left.index(comm.rank), len(left))
    check_collectives(smaller)


@pytest.mark.parametrize(
    ("size", "victims"),
    [(2, [0]), (3, [2]), (3, [0, 1]), (5, [0, 4]), (6, [3]), (7, [0]), (8, [2, 5]), (13, [1, 12])],
)
def test_survivors_continue_without_the_ranks_that_were_lost(size, victims):
    survivors_of(lose, size, victims, victims=victims)


def shrink_alone(comm):
    smaller = comm.shrink()
    assert smaller.job_ranks == (0,)
    check_collectives(smaller)


def test_a_rank_alone_can_shrink():
    survivors_of(shrink_alone, 1, victims=[])


def shrink_often(comm, rounds):
    """Lose the ranks of each round, which are ranks of the job."""
    me = comm.rank
    for lost in rounds:
        if me in lost:
            die()
        call_until_it_fails(comm)
        while set(comm.job_ranks) & set(lost):
            with suppress(CommError):
                comm = comm.shrink()
        check_collectives(comm)
    return comm.job_ranks


def test_repeated_faults_shrink_a_job_of_eight_to_seven_to_five_and_to_one():
    rounds = [[3], [0, 7], [1, 2, 5, 6]]
    assert survivors_of(shrink_often, 8, rounds, victims=[0, 1, 2, 3, 5, 6, 7]) == [(4,)]


def die_while_others_agree(comm, victims, delay_s):
    if comm.rank == victims[0]:
        die()
    call_until_it_fails(comm)
    if comm.rank in victims:
        threading.Timer(delay_s, die).start()
    smaller = comm.shrink()
    if comm.rank in victims:
        time.sleep(60)
    with suppress(CommError):  # the victim may have died after the agreement
        check_collectives(smaller)
        smaller.barrier()
    left = tuple(rank for rank in range(comm.size) if rank not in victims)
    while smaller.job_ranks != left:
        call_until_it_fails(smaller)
        smaller = smaller.shrink()
    check_collectives(smaller)
    return smaller.job_ranks


@pytest.mark.parametrize("delay_s", [0.0, 0.0005, 0.003])
@pytest.mark.parametrize("victims", [[0, 1], [4, 2, 3]])
def test_ranks_that_die_during_the_agreement_are_left_out(victims, delay_s):
    values = survivors_of(die_while_others_agree, 5, victims, delay_s, victims=victims)
    assert len(set(values)) == 1


# ---- ranks that stop --------------------------------------------------------------------------------------------


def stop_and_resume(comm, victim):
    processes = np.zeros(comm.size, np.int64)
    comm.all_gather(processes, np.array([os.getpid()]))
    if comm.rank == victim:
        os.kill(os.getpid(), signal.SIGSTOP)
        error = call_until_it_fails(comm)  # of the others, who continue
        assert isinstance(error, Excluded), error
        assert error.rank == victim
        with pytest.raises(Excluded, match=f"rank {victim} .*ranks 0, 1 of the job continue without it"):
            comm.shrink()
        with pytest.raises(Excluded):
            comm.split(0)
        return None
    with pytest.raises(CollectiveTimeout):
        comm.all_reduce(np.ones(10**6), timeout=0.3)
    smaller = comm.shrink(timeout=0.3)
    check_collectives(smaller)
    if smaller.rank == 0:
        os.kill(int(processes[victim]), signal.SIGCONT)
    ends_s = time.monotonic() + 0.5
    enough = np.zeros(1)
    while not enough[0]:  # the excluded rank is awake, and does not disturb
        check_collectives(smaller)
        enough[0] = time.monotonic() > ends_s
        smaller.all_reduce(enough, op="min")
    return smaller.job_ranks


def test_a_stopped_rank_is_excluded_and_told_so_when_it_resumes():
    outcomes = outcomes_of(stop_and_resume, 3, 2, patience_s=PATIENCE_S)
    assert [outcome.value for outcome in outcomes] == [(0, 1), (0, 1), None], [each.story for each in outcomes]


def stop_after_the_vote(comm, victim):
    processes = np.zeros(comm.size, np.int64)
    comm.all_gather(processes, np.array([os.getpid()]))
    if comm.rank == victim:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGSTOP)).start()
        with pytest.raises(Excluded):
            comm.shrink().shrink()
        return None
    wait_until(lambda: state_of(int(processes[victim])) == "T")
    smaller = comm.shrink(timeout=0.5)
    check_collectives(smaller)
    if smaller.rank == 0:
        os.kill(int(processes[victim]), signal.SIGCONT)
    return smaller.job_ranks


def test_a_rank_that_stops_after_its_vote_is_excluded_by_the_meeting():
    outcomes = outcomes_of(stop_after_the_vote, 3, 0, patience_s=PATIENCE_S)
    assert [outcome.value for outcome in outcomes] == [None, (1, 2), (1, 2)], [each.story for each in outcomes]


# ---- ranks that have not failed ---------------------------------------------------------------------------------


def shrink_without_fault(comm):
    if comm.rank == 0:
        time.sleep(0.05)
    else:
        with pytest.raises(Aborted, match="rank 0 called shrink"):
            comm.barrier()
    smaller = comm.shrink()
    assert smaller.size == comm.size
    check_collectives(smaller)


def test_one_rank_can_shrink_a_communicator_in_which_nothing_has_failed():
    survivors_of(shrink_without_fault, 3, victims=[])


def leave(comm):
    if comm.rank == 1:
        comm.close()
        return None
    call_until_it_fails(comm)
    smaller = comm.shrink()
    check_collectives(smaller)
    return smaller.job_ranks


def test_a_rank_that_has_closed_the_communicator_is_left_out():
    assert survivors_of(leave, 4, victims=[1])[0] == (0, 2, 3)


def interrupt(comm):
    if comm.rank == 0:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            comm.shrink()
        return None
    time.sleep(0.3)
    smaller = comm.shrink()
    check_collectives(smaller)
    return smaller.job_ranks


def test_an_interrupted_rank_withdraws_its_vote():
    assert survivors_of(interrupt, 3, victims=[0]) == [(1, 2), (1, 2)]


# ---- communicators of a part of the job, and asynchronous calls -------------------------------------------------


def lose_in_a_part(comm, victim):
    half = comm.split(comm.rank % 2)
    if comm.rank == victim:
        die()
    if victim not in half.job_ranks:
        check_collectives(half)
        half.barrier()
    else:
        assert call_until_it_fails(half).rank == victim
        half = half.shrink()
        assert half.job_ranks == tuple(rank for rank in range(comm.rank % 2, comm.size, 2) if rank != victim)
        assert half.parent_ranks == tuple(rank // 2 for rank in half.job_ranks)
        check_collectives(half)
    smaller = comm.shrink()  # the whole job, although only a part of it has noticed
    check_collectives(smaller)
    halves = smaller.split(smaller.rank % 2)
    check_collectives(halves)
    return halves.job_ranks


def test_a_part_of_the_job_shrinks_and_so_does_the_whole():
    values = survivors_of(lose_in_a_part, 6, 2, victims=[2])
    assert values == [(0, 3, 5), (1, 4), (0, 3, 5), (1, 4), (0, 3, 5)]


def wait_in_a_part(comm):
    half = comm.split(comm.rank // 2)
    if comm.rank == 1:  # it waits in the part for a rank that has left for shrink
        with pytest.raises(Aborted):
            half.barrier()
    smaller = comm.shrink()
    with pytest.raises(Aborted):
        half.barrier()
    return smaller.size


def test_shrink_ends_calls_on_the_parts_of_a_communicator():
    assert survivors_of(wait_in_a_part, 4, victims=[]) == [4] * 4


def lose_in_background(comm, victim):
    arrays = [np.full(200_000, 1.0) for _ in range(4)]
    if comm.rank == victim:
        comm.all_reduce(arrays[0], async_op=True)
        die()
    works = []
    with suppress(CommError):  # another rank may have noticed the fault already
        works += [comm.all_reduce(array, async_op=True) for array in arrays]
    smaller = comm.shrink()
    errors = [work.exception() for work in works]  # they are over
    assert not works or isinstance(errors[-1], CommError)
    kept = [array.copy() for array in arrays]
    check_collectives(smaller)
    works = [smaller.all_reduce(np.ones(1000), async_op=True) for _ in range(3)]
    for work in works:
        work.wait()
    assert all((array == copy).all() for array, copy in zip(arrays, kept, strict=True)), "no thread writes any more"


def test_asynchronous_calls_have_failed_when_shrink_returns():
    survivors_of(lose_in_background, 3, 1, victims=[1])


def die_in_split(comm, victim):
    if comm.rank == victim:
        threading.Timer(0.002, die).start()
    try:
        while True:
            comm.split(0).close()
    except CommError:
        comm = comm.shrink()
    check_collectives(comm)


def test_a_rank_that_dies_in_split_is_left_out():
    survivors_of(die_in_split, 4, 3, victims=[3])
