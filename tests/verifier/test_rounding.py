"""The proof that all ranks agree when sent chunks are rounded."""

from __future__ import annotations

import json

import pytest

from builders import keeps_a_copy, there_and_back
from unisono import find
from unisono.algorithms import BUILT_IN
from unisono.collectives import all_reduce
from unisono.errors import GoalError
from unisono.schedule.network import run
from unisono.verifier import prove
from unisono.verifier.rounding import Rounding, RoundingMemory, prove_rounding, rounding_of

WITH_DATA = [algorithm for algorithm in BUILT_IN if algorithm.collective.carries_data]
# In these, ranks that hold the same sum round it separately: with stochastic rounding they would disagree.
NOT_AT_RANDOM = {"all_reduce/recursive_doubling", "all_reduce/butterfly", "all_reduce/leaders"}


def schedules(algorithm):
    for size in range(1, 18):
        if algorithm.can_serve(size):
            for root in range(size) if algorithm.collective.rooted else [None]:
                yield algorithm.schedule(size, root)


def only_some_ranks_send_the_result(name: str, size: int) -> bool:
    """Return whether the result is sent, and so rounded, by some of the ranks that compute it and not by others."""
    if name == "all_reduce/recursive_doubling":
        return size & (size - 1) != 0  # sent to the ranks beyond a power of two
    nodes = -(-size // 4)
    # All leaders compute the result; the only rank of a node sends it to no other rank.
    return name == "all_reduce/leaders" and nodes > 1 and nodes & (nodes - 1) == 0 and size % 4 == 1


@pytest.mark.parametrize("algorithm", WITH_DATA, ids=str)
def test_every_built_in_algorithm_agrees_with_a_codec(algorithm):
    for schedule in schedules(algorithm):
        last = prove_rounding(schedule).last
        assert last == only_some_ranks_send_the_result(str(algorithm), schedule.size), schedule.size


@pytest.mark.parametrize("algorithm", WITH_DATA, ids=str)
def test_algorithms_that_agree_with_stochastic_rounding_round_each_sum_on_one_rank(algorithm):
    failed = set()
    for schedule in schedules(algorithm):
        try:
            assert not prove_rounding(schedule, at_random=True).last
        except GoalError:
            failed.add(schedule.size)
    assert bool(failed) == (str(algorithm) in NOT_AT_RANDOM)
    assert failed.isdisjoint({1, 2})  # with two ranks, each rounds only its own input


def test_a_program_that_agrees_without_a_codec_but_not_with_one_is_rejected():
    prove(keeps_a_copy.schedule(2))
    with pytest.raises(GoalError) as caught:
        prove_rounding(keeps_a_copy.schedule(2))
    text = str(caught.value)
    assert "all_reduce/keeps_a_copy on 2 ranks, rank 1, chunk 0" in text
    assert "a0+R(a1)" in text
    assert "R(a0)+a1" in text


def test_sent_chunks_are_rounded_on_both_sides():
    schedule = there_and_back.schedule(2)
    memory = RoundingMemory(schedule, all_reduce)
    run(schedule, memory, read_sent=memory.send)
    assert [memory.symbols.expression(row[0]) for row in memory.rows] == ["R(a0+R(a1))"] * 2


def test_rounding_twice_is_rounding_once():
    memory = RoundingMemory(there_and_back.schedule(2), all_reduce)
    once = memory.symbols.round(1)
    assert memory.symbols.round(once) == once == memory.symbols.round(1)
    assert memory.symbols.round(1, by=0) != memory.symbols.round(1, by=1)


def test_several_chunks_are_rounded_separately():
    memory = RoundingMemory(find("ring").schedule(3), all_reduce)
    sent = memory.send(0, range(2))
    assert sent == memory.rows[0][:2] == [memory.symbols.round(1), memory.symbols.round(2)]
    assert memory.send(1, [2, 0]) == [memory.rows[1][2], memory.rows[1][0]]


def test_a_stored_proof_is_reused(tmp_path):
    schedule = find("recursive_doubling").schedule(3)
    assert rounding_of(schedule, directory=tmp_path) == Rounding("all_reduce/recursive_doubling", 3, False, True)
    (stored,) = tmp_path.glob("*.json")
    facts = json.loads(stored.read_text())
    stored.write_text(json.dumps({**facts, "last": False}))
    assert not rounding_of(schedule, directory=tmp_path).last  # the stored record is used


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"algorithm": "x", "size": 3, "at_random": false, "last": false}'])
def test_a_damaged_proof_is_ignored(tmp_path, text):
    schedule = find("recursive_doubling").schedule(3)
    rounding_of(schedule, directory=tmp_path)
    (stored,) = tmp_path.glob("*.json")
    stored.write_text(text)
    assert rounding_of(schedule, directory=tmp_path).last


def test_failed_proofs_of_stochastic_rounding_are_not_stored(tmp_path):
    for _ in range(2):
        with pytest.raises(GoalError, match="stochastically"):
            rounding_of(find("recursive_doubling").schedule(4), at_random=True, directory=tmp_path)
    assert not list(tmp_path.glob("*"))
