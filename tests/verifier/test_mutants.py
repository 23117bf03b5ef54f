"""The verifier rejects thousands of spoilt programs; one that accepts everything would pass all other tests.

A mutant that is accepted must be equivalent, which its results show: played on random numbers, it gives every rank
the right result, with the same bits.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from builders import NAMES, inputs_for, same, wanted_outputs
from mutation import MUTATIONS, mutant
from unisono import play, prove
from unisono.errors import ScheduleError

SEEDS_PER_ALGORITHM = 75


def is_right(schedule) -> bool:
    """Return whether the results are right on integers (exactly), and on floats the same bits on every rank."""
    if schedule.collective == "barrier":
        return all(output.all() for output in play(schedule).outputs)
    rng = np.random.default_rng(1)
    whole = inputs_for(schedule, lambda rank, length: rng.integers(-1000, 1000, length))
    if not same(play(schedule, whole).outputs, wanted_outputs(schedule, whole)):
        return False
    if schedule.collective != "all_reduce":
        return True
    real = inputs_for(schedule, lambda rank, length: rng.standard_normal(length).astype(np.float32))
    return len({output.tobytes() for output in play(schedule, real).outputs}) == 1


@pytest.fixture(scope="module")
def verdicts():
    """Return the verdict on every mutant: rejected (with the error), or accepted."""
    found = []
    for name in NAMES:
        for seed in range(SEEDS_PER_ALGORITHM):
            made = mutant(name, seed)
            if made is None:
                continue
            what, schedule = made
            try:
                prove(schedule)
            except ScheduleError as error:
                found.append((what, schedule, error))
            else:
                found.append((what, schedule, None))
    return found


def test_there_are_thousands_of_mutants_of_every_kind(verdicts):
    assert len(verdicts) >= 2000  # the number in docs/verifier.md
    kinds = Counter(what.split()[0] for what, *_ in verdicts)
    assert set(kinds) == {mutation.__name__ for mutation in MUTATIONS}
    assert min(kinds.values()) >= 50


@pytest.mark.campaign
def test_every_accepted_mutant_gives_the_right_results(verdicts, record_property):
    record_property("programs", len(verdicts))
    wrong = [what for what, schedule, error in verdicts if error is None and not is_right(schedule)]
    assert wrong == []


def test_nearly_all_mutants_are_rejected(verdicts):
    refused = sum(error is not None for *_, error in verdicts)
    assert refused / len(verdicts) > 0.9


def test_every_rejection_states_a_location(verdicts):
    for what, _, error in verdicts:
        if error is not None:
            assert error.algorithm, what
            assert error.size, what
            assert error.rank is not None, what


def test_all_kinds_of_errors_occur(verdicts):
    kinds = {type(error).__name__ for *_, error in verdicts if error is not None}
    assert kinds >= {"UnmatchedError", "DeadlockError", "HazardError", "GoalError"}


def test_an_incorrect_program_is_detected_by_its_results():
    """The check above can fail: for mutants that only confuse recv and recv_reduce, some results are wrong."""
    caught = 0
    for seed in range(200):
        made = mutant("ring", seed)
        if made and made[0].startswith("confuse_receives"):
            caught += not is_right(made[1])
    assert caught > 0
