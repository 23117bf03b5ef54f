"""Several communicators at the same time."""

from __future__ import annotations

import numpy as np
import pytest

from unisono.errors import MismatchError
from unisono.launch.spawn import outcomes_of


def rows_and_columns(comm):
    """Sum along the rows of a grid with two columns, then along its columns."""
    row, column = comm.rank // 2, comm.rank % 2
    with comm.split(row) as along_row, comm.split(column) as along_column:
        assert along_row.rank == column
        assert along_column.rank == row
        x = np.full(5000, float(comm.rank))
        along_row.all_reduce(x)
        along_column.all_reduce(x)
        assert (x == sum(range(comm.size))).all()
        works = [group.all_reduce(np.ones(10**5), async_op=True) for group in (along_row, along_column, comm)]
        for work in works:
            work.wait()
    comm.barrier()


def test_rows_and_columns_of_a_grid_are_communicators(pools):
    pools[8].call(rows_and_columns)


def order_and_absence(comm):
    group = comm.split(None if comm.rank == 0 else 1, key=-comm.rank)
    if comm.rank == 0:
        assert group is None
        return
    assert (group.rank, group.size) == (comm.size - 1 - comm.rank, comm.size - 1)
    out = np.zeros(group.size, int)
    group.all_gather(out, np.array([comm.rank]))
    assert out.tolist() == list(range(comm.size - 1, 0, -1))
    nested = group.split(group.rank % 2)
    x = np.ones(1)
    nested.all_reduce(x)
    assert x == nested.size
    nested.close()
    group.close()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_keys_define_the_order_and_none_excludes_a_rank(pools, size):
    pools[size].call(order_and_absence)


def memory_comes_back(comm):
    """A communicator frees its memory when all ranks have closed it."""
    import os

    from unisono.bootstrap.membership import Link

    link: Link = comm._link

    def used() -> int:
        return os.fstat(link.resources.descriptor).st_blocks * 512

    comm.barrier()
    before = used()
    for _ in range(5):
        group = comm.split(0)
        group.all_reduce(np.ones(10**6))
        comm.barrier()
        during = used()
        comm.barrier()
        group.close()
        comm.barrier()
        assert during > before + 4_000_000
        assert used() < before + 1_000_000
        comm.barrier()


def test_closed_communicators_free_their_memory(pools):
    pools[3].call(memory_comes_back)


def break_one(comm):
    group = comm.split(0)
    with pytest.raises(MismatchError):
        group.all_reduce(np.ones(comm.rank + 1))
    x = np.ones(4)
    comm.all_reduce(x)  # the other communicator is not affected
    assert (x == comm.size).all()


def test_a_broken_communicator_does_not_break_the_others():
    outcomes = outcomes_of(break_one, 3)
    assert [outcome.error for outcome in outcomes] == [None] * 3, outcomes


def twins(comm):
    """The first twin needs no messages, the second one does; the calls of each have a separate order."""
    with comm.duplicate() as first, comm.duplicate() as second, first.duplicate() as third:
        assert [(twin.rank, twin.size) for twin in (first, second, third)] == [(comm.rank, comm.size)] * 3
        everyone = (comm, first, second, third)
        # Each rank makes the calls of the four in a different order.
        works = [
            (place, everyone[place].all_reduce(np.full(1000, float(place)), async_op=True))
            for place in sorted(range(4), key=lambda place: (place + comm.rank) % 4)
        ]
        for _, work in works:
            work.wait()
        x = np.ones(3)
        third.all_reduce(x)
        assert (x == comm.size).all()
    comm.barrier()


def test_duplicates_have_the_same_ranks_and_a_separate_order_of_calls(pools):
    pools[5].call(twins)
