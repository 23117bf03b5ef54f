from __future__ import annotations

import json

import pytest

from unisono import algorithm, find, one, recv_reduce, send
from unisono.collectives import all_reduce
from unisono.errors import ScheduleError
from unisono.verifier import cache, prove
from unisono.verifier.cache import content_digest, proof_of


def test_a_proof_is_found_again_with_all_its_facts(tmp_path):
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
    """Two functions of one name that yield other steps have other keys; two that yield the same have the same."""
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
    monkeypatch.setattr(cache, "_digest_of_judges", lambda: b"another verifier")
    assert content_digest(schedule, 1) != here


def test_a_program_that_fails_leaves_nothing_in_the_cache(tmp_path):
    with pytest.raises(ScheduleError):
        proof_of(swap(1).schedule(5), directory=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"algorithm": "x"}', "\x00\x01"])
def test_a_damaged_entry_is_proved_anew(tmp_path, damage):
    schedule = find("ring").schedule(5)
    proof_of(schedule, directory=tmp_path)
    [entry] = tmp_path.iterdir()
    entry.write_text(damage)
    proof, found = proof_of(schedule, directory=tmp_path)
    assert (proof, found) == (prove(schedule), False)
    assert json.loads(entry.read_text())["algorithm"] == "all_reduce/ring"


def test_a_directory_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    proof, found = proof_of(find("ring").schedule(5), directory=tmp_path / "file" / "proofs")
    assert (proof.steps, found) == (8, False)
