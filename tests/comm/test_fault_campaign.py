"""A campaign of random faults: a rank fails at a random point of random calls, and every other rank learns which.

One trial: 2 to 5 ranks make the same random calls on the communicator of the job and on parts of it, at once and in
the background. One of them, the victim, fails in one of many ways, between two calls or at any moment. Every survivor
must get an error that names the victim by its rank in the job, soon, and nothing may be left behind.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import random
import re
import resource
import signal
import sys
import threading
import time
from collections import Counter

import numpy as np
import pytest

from leaks import Leaks
from unisono.errors import Aborted, CommError
from unisono.launch.spawn import outcomes_of

pytestmark = [pytest.mark.slow, pytest.mark.campaign]

SOON_S = 15.0  # the limit for events that usually take milliseconds, on a busy machine
STOPPED_S = 3.0  # the timeout of calls if a rank is stopped: the others have no other way to find out
AFTER_STOPPED_S = 5.0  # the stopped rank itself never ends
CALLS = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier", "exchange")
LENGTHS = (1, 7, 1000, 60_000)
ENDS = ("killed", "crashes", "exits well", "exits", "raises", "closes", "aborts", "interrupted")
AT_ANY_MOMENT = ("killed", "crashes", "exits well")  # a thread can do this while another one is in a call


class Fault:
    """The fault of the victim, and its time."""

    def __init__(self, dice: random.Random, size: int, stopped: bool) -> None:
        self.victim = dice.randrange(size)
        self.how = "stopped" if stopped else dice.choice(ENDS)
        self.at_call = dice.randrange(12)
        self.delay_s = None
        if self.how in (*AT_ANY_MOMENT, "stopped") and dice.random() < 0.5:
            self.delay_s = dice.random() * 0.02

    def strike(self, communicators) -> None:
        if self.how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.how == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self.how == "crashes":
            faulthandler.disable()  # the handler of pytest would print the stacks of all threads
            ctypes.string_at(0)
        elif self.how == "exits well":
            os._exit(0)
        elif self.how == "exits":
            sys.exit(4)
        elif self.how == "raises":
            raise ZeroDivisionError("a mistake")
        elif self.how == "closes":
            for communicator in communicators:
                communicator.close()
            sys.exit(0)
        elif self.how == "aborts":
            for communicator in communicators:
                communicator.abort("enough")
        elif self.how == "interrupted":
            os.kill(os.getpid(), signal.SIGINT)

    def __str__(self) -> str:
        when = f"at call {self.at_call}" if self.delay_s is None else f"{self.delay_s * 1000:.1f} ms after that call"
        return f"rank {self.victim} {self.how} {when}"


def make_call(comm, dice):
    """Make a random call, the same on all ranks; return a Work or None."""
    name, length, in_background = dice.choice(CALLS), dice.choice(LENGTHS), dice.random() < 0.4
    # 60 is a multiple of all sizes: ranks of parts of different sizes draw the same random numbers
    root, shift = dice.randrange(60) % comm.size, 1 + dice.randrange(60) % max(1, comm.size - 1)
    x, whole = np.ones(length), np.ones(length * comm.size)
    if name == "exchange":
        if comm.size == 1:
            return None
        works = [
            comm.send(x, (comm.rank + shift) % comm.size, async_op=True),
            comm.recv(np.empty_like(x), (comm.rank - shift) % comm.size, async_op=True),
        ]
        return works[0] if in_background else works[1].wait()
    arrays = {
        "all_gather": (whole, x), "reduce_scatter": (x, whole), "all_to_all": (whole, whole.copy()), "barrier": (),
    }.get(name, (x,))  # fmt: skip
    options = {"root": root} if name in ("broadcast", "reduce") else {}
    return getattr(comm, name)(*arrays, **options, async_op=in_background)


def take_part(comm, seed, stopped):
    """Run a rank of a trial."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    dice = random.Random(seed)
    dice.randrange(10)  # the first random number was the number of ranks
    fault = Fault(dice, comm.size, stopped)
    colors = [dice.randrange(2) for _ in range(comm.size)]
    halves = comm.split(colors[comm.rank], key=dice.choice([1, -1]) * comm.rank)
    communicators = [comm, halves, comm.duplicate(), halves.split(0, key=-comm.rank)]
    if comm.rank == fault.victim and fault.how == "interrupted":
        signal.signal(signal.SIGINT, signal.default_int_handler)
    comm.barrier()
    works = []
    for number in range(12):
        if comm.rank == fault.victim and number == fault.at_call:
            if fault.delay_s is None:
                fault.strike(communicators)
            else:
                threading.Timer(fault.delay_s, fault.strike, (communicators,)).start()
        works.append(make_call(communicators[dice.choice([0, 0, 1, 1, 2, 3])], dice))
        if dice.random() < 0.3:
            for work in filter(None, works):
                work.wait()
            works = []
    for work in filter(None, works):
        work.wait()
    while True:
        comm.barrier()


def names(error, victim) -> bool:
    """Return whether an error states that the victim failed, or that a rank aborted because of it."""
    told = error.rank == victim or type(error) is Aborted
    return told and re.search(rf"\brank {victim}\b(?! of its group)", str(error)) is not None


def trial(seed, stopped=False):
    """Run one trial; return its description and the number of survivors."""
    dice = random.Random(seed)
    size = 2 + dice.randrange(10) % 4
    fault = Fault(dice, size, stopped)
    began = time.monotonic()
    timeout_s = STOPPED_S if stopped else 60.0
    patience_s = AFTER_STOPPED_S if stopped else SOON_S
    outcomes = outcomes_of(take_part, size, seed, stopped, timeout=timeout_s, patience_s=patience_s)
    assert time.monotonic() - began < timeout_s * stopped + SOON_S + 5, f"seed {seed}: {fault}"
    survivors = [outcome for rank, outcome in enumerate(outcomes) if rank != fault.victim]
    for outcome in survivors:
        assert isinstance(outcome.error, CommError), f"seed {seed}: {fault}: {outcome.error!r}\n{outcome.story}"
        assert outcome.story != "(stopped)", f"seed {seed}: {fault}: a survivor was not told"
    named = [outcome for outcome in survivors if names(outcome.error, fault.victim)]
    if stopped:  # another rank may wait for a rank that waits for the victim elsewhere
        assert named, f"seed {seed}: {fault}: {[str(outcome.error) for outcome in survivors]}"
    else:
        unnamed = [str(outcome.error) for outcome in survivors if outcome not in named]
        assert not unnamed, f"seed {seed}: {fault}: {unnamed}"
    return fault.how, len(survivors), len(named)


@pytest.mark.parametrize(
    ("trials", "stopped"),
    [
        (30, 1),
        pytest.param(300, 6, marks=pytest.mark.long),
    ],
)
def test_every_survivor_of_random_faults_is_told_which_rank_failed(trials, stopped, record_property):
    leaks = Leaks()
    counts, survivors, named = Counter(), 0, 0
    for number in range(trials + stopped):
        how, told, of_them = trial(seed=trials * 1000 + number, stopped=number >= trials)
        counts[how] += 1
        survivors += told
        named += of_them
        if number % 50 == 49:
            leaks.check()
    leaks.check()
    record_property("faults", sum(counts.values()))
    print(f"{sum(counts.values())} faults ({dict(counts)}), {survivors} survivors, {named} told the rank")
    assert set(counts) == {*ENDS, "stopped"}
