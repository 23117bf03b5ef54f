from __future__ import annotations

import dataclasses
import json

import pytest

from unisono import Schedule, algorithm, find, one, recv_reduce, send
from unisono.collectives import all_reduce
from unisono.errors import GoalError, ScheduleError
from unisono.schedule import freeze
from unisono.verifier import cache, prove
from unisono.verifier.cache import proof_of


def content_digest(schedule, claim):
    return cache.content_digest(freeze(schedule), claim)


def test_a_cached_proof_has_all_its_facts(tmp_path):
    schedule = find("hierarchical").schedule(7, node=3)
    first, found_first = proof_of(schedule, directory=tmp_path)
    second, found_second = proof_of(schedule, directory=tmp_path)
    assert (found_first, found_second) == (False, True)
    assert first == second == prove(schedule)


def swap(sign):
    @algorithm(all_reduce, chunks=one)
    def mine(rank, size):
        for hop in range(1, size):
            yield send(0, dst=(rank + sign * hop) % size), recv_reduce(0, src=(rank - sign * hop) % size)

    return mine


def test_the_key_is_the_content_of_the_programs():
    """Functions of one name with different steps have different keys; those with equal steps have equal keys."""
    assert content_digest(swap(1).schedule(2), 1) == content_digest(swap(-1).schedule(2), 1)
    assert content_digest(swap(1).schedule(3), 1) != content_digest(swap(-1).schedule(3), 1)


@pytest.mark.parametrize("change", [{"size": 6}, {"root": 1}])
def test_size_and_root_are_part_of_the_key(change):
    algorithm = find("broadcast/tree")
    assert content_digest(algorithm.schedule(5), 1) != content_digest(algorithm.schedule(**{"size": 5, **change}), 1)


def test_the_depth_and_the_verifier_itself_are_part_of_the_key(monkeypatch):
    schedule = find("ring").schedule(5)
    here = content_digest(schedule, 1)
    assert content_digest(schedule, 2) != here
    monkeypatch.setattr(cache, "_digest_of_dependencies", lambda: b"another verifier")
    assert content_digest(schedule, 1) != here


def test_a_program_that_fails_leaves_nothing_in_the_cache(tmp_path):
    with pytest.raises(ScheduleError):
        proof_of(swap(1).schedule(5), directory=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"algorithm": "x"}', "\x00\x01", "[" * 100_000])
def test_a_damaged_entry_is_proved_again(tmp_path, damage):
    schedule = find("ring").schedule(5)
    proof_of(schedule, directory=tmp_path)
    [entry] = tmp_path.iterdir()
    entry.write_text(damage)
    proof, found = proof_of(schedule, directory=tmp_path)
    assert (proof, found) == (prove(schedule), False)
    assert json.loads(entry.read_text())["algorithm"] == "all_reduce/ring"


def test_a_directory_that_cannot_be_written_is_not_an_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    proof, found = proof_of(find("ring").schedule(5), directory=tmp_path / "file" / "proofs")
    assert (proof.steps, found) == (8, False)


@pytest.mark.parametrize(
    "change", [{"size": 99}, {"algorithm": "barrier/other"}, {"depth": 7}, {"sent": "1/0"}, {"steps": "many"}]
)
def test_an_entry_of_another_schedule_is_not_trusted(tmp_path, change):
    schedule = find("ring").schedule(5)
    proof_of(schedule, directory=tmp_path)
    [entry] = tmp_path.iterdir()
    entry.write_text(json.dumps({**json.loads(entry.read_text()), **change}))
    assert proof_of(schedule, directory=tmp_path) == (prove(schedule), False)


@pytest.mark.parametrize(
    "change",
    [{"slots": 2}, {"algorithm": "other"}, {"collective": "barrier"}, {"chunks": 2}, {"options": {"node": 1}}],
)
def test_every_field_of_a_schedule_is_part_of_the_key(change):
    schedule = Schedule("all_reduce", "mine", 1, 1, 1, make=lambda rank: [])
    assert content_digest(schedule, 1) != content_digest(dataclasses.replace(schedule, **change), 1)


def test_a_nondeterministic_program_is_judged_by_its_first_steps(tmp_path):
    """It yields different steps each time it runs: it runs once, and the proof belongs to those steps."""
    good = [[(send(0, dst=1), recv_reduce(0, src=1))], [(send(0, dst=0), recv_reduce(0, src=0))]]
    bad = [[send(0, dst=1)], [recv_reduce(0, src=0)]]
    asked = [0, 0]

    def moody(rank):
        asked[rank] += 1
        return bad[rank] if asked[rank] == 1 else good[rank]

    schedule = Schedule("all_reduce", "x", 2, 1, 1, make=moody)
    with pytest.raises(GoalError):
        proof_of(schedule, directory=tmp_path)
    found = cache.proved(schedule, directory=tmp_path)
    assert asked == [2, 2]
    assert [list(found.schedule.program(rank)) for rank in range(2)] == good
    with pytest.raises(GoalError):
        proof_of(Schedule("all_reduce", "x", 2, 1, 1, make=bad.__getitem__), directory=tmp_path)
    assert proof_of(Schedule("all_reduce", "x", 2, 1, 1, make=good.__getitem__), directory=tmp_path)[1]
