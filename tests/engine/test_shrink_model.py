"""The survivors' agreement holds in every interleaving (shrink_model.py); the engine takes the steps of the model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.shrink_model import PROTOCOL, Model

CODE = Path(__file__).parents[2] / "engine" / "src" / "shm" / "survivors.cpp"
STEPS_IN_CODE = {
    "p": r"mine\.vote\.store\(Vote::posted\)",
    "r": r"if \(auto found = result\(\)\)",
    "l": r"endpoint_\.lost_ranks\(\)",
    "v": r"board\.vote\.load\(\)",
    "w": r"proposal\.members\[rank / word_bits\] \|=",
    "c": r"decided_\.compare_exchange_strong",
}
CASES = [
    (1, {}),
    (2, {"deaths": 1, "stops": 1, "fine": True}),
    (2, {"deaths": 1, "stops": 1, "fine": True, "timeouts": "any"}),
    (3, {"fine": True}),
    (3, {"deaths": 1}),
    (3, {"stops": 1}),
    (3, {"deaths": 2, "stops": 1}),
    (3, {"deaths": 1, "timeouts": "any"}),
    (4, {"deaths": 1}),
]
LONG_CASES = [
    (3, {"deaths": 1, "stops": 1, "fine": True}),
    (3, {"deaths": 2, "fine": True, "timeouts": "any"}),
    (4, {"deaths": 2, "stops": 1}),
    (4, {"deaths": 2, "timeouts": "any"}),
]
MISTAKES = [
    ("the decision is stored, not swapped", {"deaths": 1}, "agreement"),
    ("the proposal is written after the decision", {}, "agreement"),
    ("votes are not awaited", {}, "validity"),
    ("the clock is read after the votes", {"stops": 1, "fine": True}, "validity"),
    ("only rank 0 decides", {"deaths": 1}, "termination"),
]


@pytest.mark.parametrize(("size", "faults"), CASES)
def test_survivors_agree_in_every_interleaving(size, faults):
    found = Model(size, **faults).search()
    assert found.broken == set()
    assert found.states > 5 * size


@pytest.mark.long
@pytest.mark.parametrize(("size", "faults"), LONG_CASES)
def test_survivors_agree_in_every_interleaving_of_more_faults(size, faults):
    found = Model(size, **faults).search()
    assert found.broken == set()
    assert found.states > 1000


@pytest.mark.parametrize(("mistake", "faults", "property_"), MISTAKES)
def test_the_model_finds_the_fault_of_a_wrong_protocol(mistake, faults, property_):
    assert property_ in Model(3, **faults, mistake=mistake).search(until=property_).broken


def test_the_engine_takes_the_steps_of_the_model_in_their_order():
    code = CODE.read_text()
    agree = code[code.index("SurvivorVote::agree(") : code.index("SurvivorVote::Tally SurvivorVote::count_votes")]
    assert agree.index("store(Vote::posted)") < agree.index("result()") < agree.index("count_votes()")
    assert agree.index("Clock::now()") < agree.index("count_votes()")
    assert agree.index("count_votes()") < agree.index("if (tally.all_settled || is_late)") < agree.index("propose(")
    found = [[match.start() for match in re.finditer(STEPS_IN_CODE[step], code)] for step in PROTOCOL]
    assert [len(each) for each in found] == [1] * len(PROTOCOL), "each step occurs once"
    assert found == sorted(found)
