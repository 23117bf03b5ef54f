from __future__ import annotations

import pickle
from fractions import Fraction

import pytest

from unisono import collectives
from unisono.collectives import (
    COLLECTIVES,
    Value,
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    reduce_scatter,
    scatter,
)
from unisono.errors import UsageError


@pytest.mark.parametrize("collective", COLLECTIVES, ids=str)
def test_every_collective_is_described_in_both_languages(collective):
    for words in (collective.summary, collective.story):
        assert words.en.endswith(".")
        assert words.zh.endswith("。")
        assert not any("a" <= letter <= "z" for letter in words.zh.replace("rank", ""))  # the term in both languages


def test_the_conditions_of_some_collectives_on_three_ranks_are_correct():
    everyone = 0b111
    assert dict(all_reduce.goal(1, 3, chunks=2)) == {0: Value(0, everyone), 1: Value(1, everyone)}
    assert dict(reduce_scatter.goal(1, 3, chunks=3)) == {1: Value(1, everyone)}
    assert dict(all_gather.goal(0, 3, chunks=3)) == {0: Value(0, 1), 1: Value(1, 2), 2: Value(2, 4)}
    assert dict(scatter.goal(2, 3, chunks=3, root=1)) == {2: Value(2, 0b010)}
    # block s of the output of rank 1 is block 1 of the input of rank s
    assert dict(all_to_all.goal(1, 3, chunks=3)) == {3: Value(1, 1), 4: Value(1, 2), 5: Value(1, 4)}


def test_with_two_chunks_for_each_rank_a_block_is_two_chunks():
    assert all_gather.held_before(1, 3, chunks=6) == range(2, 4)
    assert dict(all_to_all.goal(0, 2, chunks=4)) == {4: Value(0, 1), 5: Value(1, 1), 6: Value(0, 2), 7: Value(1, 2)}


def test_before_a_broadcast_only_the_root_holds_data():
    assert [len(broadcast.held_before(rank, 3, 4, root=2)) for rank in range(3)] == [0, 0, 4]
    assert [len(broadcast.held_after(rank, 3, 4, root=2)) for rank in range(3)] == [4, 4, 4]


def test_bus_factors_are_those_of_nccl_tests():
    factors = {collective.name: collective.bus_factor(8) for collective in COLLECTIVES}
    part = Fraction(7, 8)
    assert factors == {
        "broadcast": 1, "reduce": 1, "all_reduce": 2 * part, "all_gather": part, "reduce_scatter": part,
        "all_to_all": part, "scatter": part, "gather": part, "barrier": 0,
    }  # fmt: skip
    assert {collective.name for collective in COLLECTIVES if collective.bus_factor(1)} == {"broadcast", "reduce"}
    assert {collective.least_bytes(1) for collective in COLLECTIVES} == {0}


@pytest.mark.parametrize(("size", "rounds"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4), (512, 9)])
def test_the_lower_bound_on_rounds_is_the_logarithm_of_the_size(size, rounds):
    assert all_reduce.least_rounds(size) == rounds


def test_unpickling_a_collective_gives_the_same_record():
    assert pickle.loads(pickle.dumps(all_reduce)) is all_reduce


def test_a_wrong_name_gets_a_suggestion():
    with pytest.raises(UsageError, match="did you mean 'all_reduce'"):
        collectives.find("allreduce")
