"""The staging area of a communicator: small for short calls, and complete from the first long one on."""

from __future__ import annotations

import time

import numpy as np
import pytest

from unisono.bootstrap.job_config import STAGING_BYTES
from unisono.launch.spawn import spawn

pytestmark = pytest.mark.slow

SHORT = 100  # elements


def memory(comm):
    return comm.memory_in_use


def memory_of_calls(comm):
    found = [memory(comm)]
    for count in (1, SHORT, SHORT, 200_000, SHORT):
        x = np.full(count, comm.rank + 1.0)
        comm.all_reduce(x)
        assert (x == comm.size * (comm.size + 1) / 2).all()
        found.append(memory(comm))
    return found


@pytest.mark.parametrize("size", [2, 3, 5])
def test_short_calls_use_little_memory_and_a_long_one_uses_all(size):
    for found in spawn(memory_of_calls, size):
        assert found[3] < STAGING_BYTES / 8
        assert found[4] > STAGING_BYTES
        assert found[5] - found[4] < STAGING_BYTES / 8


def unread_messages(comm, lengths):
    """Let the root run ahead of its readers with messages of many lengths; return whether all arrive."""
    arrays = [np.arange(length, dtype=np.float64) + place for place, length in enumerate(lengths)]
    targets = arrays if comm.rank == 0 else [np.zeros(length) for length in lengths]
    if comm.rank != 0:
        time.sleep(0.2)  # the root has sent as much as it can
    for target in targets:
        comm.broadcast(target)
    return all((target == array).all() for target, array in zip(targets, arrays, strict=True))


@pytest.mark.parametrize(
    "lengths",
    [
        [SHORT] * 5 + [300_000] + [SHORT] * 40,
        [7, SHORT, 250, SHORT, 60_000, 9, 500_000, SHORT],
        [200, 300_000, 200, 300_000],
        [250] * 60 + [40_000] * 20,
    ],
)
def test_unread_messages_survive_the_growth(lengths):
    assert all(spawn(unread_messages, 3, lengths))


def many_calls_of_all_lengths(comm):
    """Interleave short and long calls of all kinds at random, in the same way on each rank."""
    choice = np.random.default_rng(7)
    for _ in range(150):
        count = int(choice.choice([1, 5, 40, SHORT, 400, 5_000, 70_000]))
        x = np.full(count, comm.rank + 1.0)
        comm.all_reduce(x)
        assert (x == comm.size * (comm.size + 1) / 2).all()
        root = int(choice.integers(comm.size))
        y = np.full(count, float(comm.rank))
        comm.broadcast(y, root=root)
        assert (y == root).all()
        gathered = np.zeros(count * comm.size)
        comm.all_gather(gathered, np.full(count, float(comm.rank)))
        assert (gathered.reshape(comm.size, count) == np.arange(comm.size)[:, None]).all()
    return True


@pytest.mark.parametrize("size", [2, 4])
def test_short_and_long_calls_can_alternate(size):
    assert all(spawn(many_calls_of_all_lengths, size))
