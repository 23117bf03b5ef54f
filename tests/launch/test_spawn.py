"""``unisono.spawn``: a function on local ranks."""

from __future__ import annotations

import os

import numpy as np
import pytest

import unisono
from unisono.errors import PeerLost, UsageError


def test_every_rank_returns_its_value():
    offset = 5

    def sum_up(comm, start, *, factor):  # a local function: no pickling needed
        x = np.array([start + comm.rank + offset])
        comm.all_reduce(x)
        return comm.rank, int(x[0]) * factor

    assert unisono.spawn(sum_up, 3, 10, factor=2) == [(0, 96), (1, 96), (2, 96)]


def module_level(comm):
    return os.getpid()


def test_fresh_interpreters_work_too():
    found = unisono.spawn(module_level, 2, start="spawn")
    assert len(set(found)) == 2


def test_the_exception_of_the_rank_that_failed_first_is_raised_here():
    def fail(comm):
        if comm.rank == 1:
            raise KeyError("what I looked for")
        comm.barrier()

    with pytest.raises(KeyError, match="what I looked for") as caught:
        unisono.spawn(fail, 3)
    assert caught.value.__notes__[0].startswith("on rank 1 of 3:\nTraceback (most recent call last):\n")


def test_an_error_of_several_ranks_names_all_of_them():
    with pytest.raises(UsageError) as caught:
        unisono.spawn(lambda comm: unisono.find("no_such_algorithm"), 3)
    [note] = caught.value.__notes__
    assert note.startswith("on all 3 ranks:\nTraceback")
    assert "/unisono/" not in note, "our own frames are hidden"


def test_a_rank_that_exits_is_lost():
    with pytest.raises(PeerLost, match="rank 0 exited with code 3 before it returned"):
        unisono.spawn(lambda comm: os._exit(3) if comm.rank == 0 else comm.barrier(), 2)


def test_a_result_that_cannot_be_sent_back_is_an_error():
    with pytest.raises(UsageError, match="which cannot be sent back"):
        unisono.spawn(lambda comm: lambda: None, 1)


@pytest.mark.parametrize("size", [0, -1, 1.5, "2"])
def test_a_size_that_is_not_a_number_of_ranks_is_rejected(size):
    with pytest.raises(UsageError, match="expected a whole number, 1 or more"):
        unisono.spawn(module_level, size)


def test_an_unknown_start_method_is_rejected():
    with pytest.raises(UsageError, match="expected 'fork' or 'spawn'"):
        unisono.spawn(module_level, 1, start="thread")
