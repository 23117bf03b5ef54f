"""The steps that were proved and those that are compiled are the same, by construction."""

from __future__ import annotations

import copy as copying
import dataclasses
import pickle
import threading

import pytest

from builders import line_steps
from unisono import Schedule, find, prove
from unisono.compiler import lower
from unisono.errors import GoalError, InternalError, ScheduleError, UsageError
from unisono.schedule import freeze
from unisono.verifier import ProvedSchedule, proved
from unisono.verifier.rounding import proved_with_codec


def line(make=lambda rank: line_steps(rank, 3), **changes) -> Schedule:
    return Schedule("all_reduce", "line", 3, 1, 1, make=make, **changes)


@pytest.mark.parametrize("warm", [False, True])
def test_a_program_runs_once_from_the_digest_to_the_instructions(warm):
    if warm:
        proved(line())
    runs = []
    made = proved(line(lambda rank: runs.append(rank) or line_steps(rank, 3)))
    texts = [lower(made, rank).text for rank in range(3)]
    with_codec = proved_with_codec(made)
    assert [lower(with_codec, rank).text for rank in range(3)] == texts  # a line stores no more with a codec
    assert runs == [0, 1, 2]
    assert made.cached is warm


def test_generators_that_run_only_once_are_compiled_as_proved():
    """The proof is in the cache, so that only the digest and the compiler would run the programs."""
    proved(line())
    kept = {}
    made = proved(line(lambda rank: kept.setdefault(rank, line_steps(rank, 3))))
    assert made.cached
    assert [lower(made, rank).text for rank in range(3)] == [lower(proved(line()), rank).text for rank in range(3)]


def test_the_compiler_accepts_only_proved_schedules():
    schedule = find("ring").schedule(3)
    for given in (schedule, freeze(schedule), prove(schedule)):
        with pytest.raises(InternalError, match="expected a ProvedSchedule"):
            lower(given, 0)


def test_only_the_verifier_makes_a_proved_schedule():
    made = proved(line())
    with pytest.raises(UsageError, match="only the verifier"):
        ProvedSchedule(freeze(line(lambda rank: [])), made.proof, made.digest, cached=False)
    with pytest.raises((UsageError, ValueError)):
        dataclasses.replace(made, schedule=freeze(line(lambda rank: [])))
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.schedule = freeze(line(lambda rank: []))
    for copied in (copying.copy, copying.deepcopy, pickle.dumps):
        with pytest.raises(UsageError, match="cannot be copied"):
            copied(made)


def test_a_function_of_the_same_name_with_other_steps_gets_a_separate_proof():
    proved(line())
    with pytest.raises(GoalError):
        proved(line(lambda rank: []))


def test_the_facts_of_a_stored_proof_must_match_the_steps(tmp_path):
    import json

    schedule = find("rabenseifner").schedule(4)
    proved(schedule, directory=tmp_path)
    [entry] = tmp_path.iterdir()
    facts = json.loads(entry.read_text())
    for change in ({"largest_message": "1/4"}, {"sent": "1/4"}, {"messages": 1}, {"equal_blocks_only": 1}):
        entry.write_text(json.dumps({**facts, **change}))
        made = proved(schedule, directory=tmp_path)
        assert (made.cached, made.proof) == (False, prove(schedule)), change


def test_a_proof_moved_to_another_name_is_not_trusted(tmp_path):
    proved(line(), directory=tmp_path)
    [entry] = tmp_path.iterdir()
    wrong = line(lambda rank: [])
    from unisono.verifier.cache import content_digest

    entry.rename(tmp_path / f"{content_digest(freeze(wrong), 1)}.json")
    with pytest.raises(GoalError):
        proved(wrong, directory=tmp_path)


def test_threads_that_prove_concurrently_all_get_the_proof(tmp_path):
    schedule, found = find("ring").schedule(16), []
    threads = [threading.Thread(target=lambda: found.append(proved(schedule, directory=tmp_path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {made.digest for made in found} == {proved(schedule, directory=tmp_path).digest}
    assert len(found) == 4
    assert len(list(tmp_path.iterdir())) == 1


def test_infinite_recursion_in_a_program_is_a_schedule_error():
    def deeper(rank):
        yield from deeper(rank)

    with pytest.raises(ScheduleError, match="RecursionError"):
        proved(line(deeper))
