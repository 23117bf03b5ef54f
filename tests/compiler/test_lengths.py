"""The chunk that each slot holds."""

from __future__ import annotations

import pytest

from unisono.algorithms import BUILT_IN
from unisono.compiler.lengths import _ChunkNumbers, contents_of
from unisono.schedule.network import run

ONE_CHUNK = [each for each in BUILT_IN if each.collective.in_place and each.collective.carries_data]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7, 8, 13])
def test_one_chunk_needs_no_execution_of_the_programs(size):
    compared = 0
    for algorithm in ONE_CHUNK:
        if not algorithm.can_serve(size):
            continue
        schedule = algorithm.schedule(size)
        if schedule.chunks != 1 or contents_of(schedule, algorithm.collective, 0) is None:
            continue
        executed = _ChunkNumbers(schedule, algorithm.collective)
        run(schedule, executed)
        assert [contents_of(schedule, algorithm.collective, rank) for rank in range(size)] == executed.contents
        compared += 1
    assert compared or size == 1
