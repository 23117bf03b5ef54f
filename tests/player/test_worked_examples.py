"""The two examples of docs/tour.md, with every number."""

from __future__ import annotations

import numpy as np
import pytest

from unisono import find, play

FOUR_RANKS = [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]]


def test_on_four_ranks_reduce_scatter_then_all_gather_equals_all_reduce():
    parts = play(find("reduce_scatter/ring").schedule(4), FOUR_RANKS).outputs
    assert [part.tolist() for part in parts] == [[6], [10], [14], [18]]
    gathered = play(find("all_gather/ring").schedule(4), parts).outputs
    assert [whole.tolist() for whole in gathered] == [[6, 10, 14, 18]] * 4
    reduced = play(find("ring").schedule(4), FOUR_RANKS).outputs
    assert [whole.tolist() for whole in reduced] == [[6, 10, 14, 18]] * 4


# The contents of five ranks before a ring all-reduce and after each of its eight steps.
RING_OF_FIVE = [
    [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [2, 3, 4, 5, 6], [3, 4, 5, 6, 7], [4, 5, 6, 7, 8]],
    [[0, 1, 2, 10, 4], [1, 2, 3, 4, 9], [3, 3, 4, 5, 6], [3, 7, 5, 6, 7], [4, 5, 11, 7, 8]],
    [[0, 1, 13, 10, 4], [1, 2, 3, 14, 9], [3, 3, 4, 5, 15], [6, 7, 5, 6, 7], [4, 12, 11, 7, 8]],
    [[0, 13, 13, 10, 4], [1, 2, 16, 14, 9], [3, 3, 4, 19, 15], [6, 7, 5, 6, 22], [10, 12, 11, 7, 8]],
    [[10, 13, 13, 10, 4], [1, 15, 16, 14, 9], [3, 3, 20, 19, 15], [6, 7, 5, 25, 22], [10, 12, 11, 7, 30]],
    [[10, 13, 13, 10, 30], [10, 15, 16, 14, 9], [3, 15, 20, 19, 15], [6, 7, 20, 25, 22], [10, 12, 11, 25, 30]],
    [[10, 13, 13, 25, 30], [10, 15, 16, 14, 30], [10, 15, 20, 19, 15], [6, 15, 20, 25, 22], [10, 12, 20, 25, 30]],
    [[10, 13, 20, 25, 30], [10, 15, 16, 25, 30], [10, 15, 20, 19, 30], [10, 15, 20, 25, 22], [10, 15, 20, 25, 30]],
    [[10, 15, 20, 25, 30]] * 5,
]  # fmt: skip


def test_a_ring_of_five_takes_eight_steps_with_these_states():
    inputs = [np.arange(5) + rank for rank in range(5)]
    frames = list(play(find("ring").schedule(5), inputs, record=True).frames())
    assert [[[int(cell.values[0]) for cell in row] for row in frame.rows] for frame in frames] == RING_OF_FIVE


def test_in_a_ring_of_five_a_chunk_gains_one_addend_per_hop():
    inputs = [np.arange(5) + rank for rank in range(5)]
    frames = list(play(find("ring").schedule(5), inputs, record=True).frames())
    summed = [sorted({cell.ranks.bit_count() for row in frame.rows for cell in row}) for frame in frames]
    assert [counts[-1] for counts in summed] == [1, 2, 3, 4, 5, 5, 5, 5, 5]
    assert summed[-1] == [5]


def test_the_table_above_follows_from_the_definition():
    """The table was not made by the player: chunk c is followed around the ring from rank c+1, by hand."""
    state = [list(range(rank, rank + 5)) for rank in range(5)]
    history = [[list(row) for row in state]]
    for hop in range(1, 9):
        sent = [(rank, (rank - hop) % 5 if hop < 5 else (rank - hop + 5) % 5) for rank in range(5)]
        values = [state[rank][chunk] for rank, chunk in sent]
        for (rank, chunk), value in zip(sent, values, strict=True):
            right = (rank + 1) % 5
            state[right][chunk] = state[right][chunk] + value if hop < 5 else value
        history.append([list(row) for row in state])
    assert history == RING_OF_FIVE


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
def test_other_reductions_work_on_four_ranks(op):
    wanted = getattr(np, op)(FOUR_RANKS, axis=0).tolist()
    assert [output.tolist() for output in play(find("ring").schedule(4), FOUR_RANKS, op).outputs] == [wanted] * 4
