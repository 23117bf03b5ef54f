"""Random ranks are lost at random moments, in calls, split, shrink and grow; the others get right results."""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import numpy as np
import pytest

from survivors import check_collectives
from unisono.errors import CommError, Excluded
from unisono.launch.spawn import outcomes_of

PATIENT_S = 60.0  # the timeout of calls if ranks are only killed
STOPPED_S = 4.0  # if one is stopped: far longer than a rank is ever delayed
NUMBERS = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP}


class Loss:
    """A rank of the job that is lost, and when."""

    def __init__(self, dice: random.Random, rank: int, stops: bool) -> None:
        self.rank = rank
        self.how = "stopped" if stops else "killed"
        self.delay_s = dice.random() * 0.3

    def __str__(self) -> str:
        return f"rank {self.rank} is {self.how} after {self.delay_s * 1000:.1f} ms"


def losses_of(seed: int, *, stops: bool) -> tuple[int, list[Loss]]:
    """Return the number of ranks and the losses of a trial."""
    dice = random.Random(seed)
    size = dice.choice([2, 3, 5, 6, 7])
    victims = dice.sample(range(size), dice.randint(1, size - 1))
    return size, [Loss(dice, rank, stops and index == 0) for index, rank in enumerate(victims)]


def work(comm, turn: int):
    """Make calls of all kinds; return the communicator with which to go on."""
    check_collectives(comm)
    part = comm.split(comm.rank % 2)
    works = [part.all_reduce(np.ones(30_000), async_op=True) for _ in range(3)]
    check_collectives(comm)
    for each in works:
        each.wait()
    part.close()
    return comm.grow() if turn % 3 == 0 else comm


def survive(comm, losses):
    """Work until all losses have happened; return the ranks that are left, or "excluded"."""
    me, timeout_s = comm.rank, comm.timeout
    processes = np.zeros(comm.size, np.int64)
    comm.all_gather(processes, np.array([os.getpid()]))
    for loss in losses:
        if loss.rank == me:
            threading.Timer(loss.delay_s, os.kill, (os.getpid(), NUMBERS[loss.how])).start()
    lost, turn = {loss.rank for loss in losses}, 0
    while True:
        try:
            while lost & set(comm.job_ranks):
                turn += 1
                comm = work(comm, turn)
            work(comm, 1)
            break
        except Excluded as error:
            return "excluded" if error.rank == me else error
        except CommError:
            try:
                comm = comm.shrink(timeout=timeout_s)
            except Excluded:
                return "excluded"
    for loss in losses:
        if comm.rank == 0 and loss.how == "stopped":
            os.kill(int(processes[loss.rank]), signal.SIGCONT)
            ends_s = time.monotonic() + 0.2
            while time.monotonic() < ends_s:
                np.ones(1000).sum()
    work(comm, 1)
    return comm.job_ranks


def check_trial(seed: int, *, stops: bool) -> None:
    """Run a trial, and check that every rank ends as it must."""
    size, losses = losses_of(seed, stops=stops)
    story = f"seed {seed}, {size} ranks: {', '.join(map(str, losses))}"
    timeout_s = STOPPED_S if stops else PATIENT_S
    outcomes = outcomes_of(survive, size, losses, timeout=timeout_s, patience_s=120.0)
    left = tuple(rank for rank in range(size) if rank not in {loss.rank for loss in losses})
    how = {loss.rank: loss.how for loss in losses}
    for rank, outcome in enumerate(outcomes):
        found = f"{story}\nrank {rank}: {outcome.value}\n{outcome.story}"
        if rank in left:
            assert outcome.error is None, found
            assert outcome.value == left, found
        elif how[rank] == "stopped":
            assert outcome.value == "excluded", found
        else:
            assert "was killed by SIGKILL" in str(outcome.error), found


@pytest.mark.parametrize("seed", range(4))
def test_ranks_that_are_killed_at_random_do_not_stop_the_others(seed):
    check_trial(seed, stops=False)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 300))
def test_ranks_that_are_killed_at_random_do_not_stop_the_others_in_many_trials(seed):
    check_trial(seed, stops=False)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(300, 320))
def test_a_rank_that_stops_at_random_is_excluded(seed):
    check_trial(seed, stops=True)
