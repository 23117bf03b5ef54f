"""No interleaving of sleepers and wakers loses a wake-up (wake_up_model.py)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.wake_up_model import PROTOCOL, search

WAITING = Path(__file__).parents[2] / "engine" / "src" / "shm" / "endpoint_waiting.cpp"
STEPS_IN_CODE = {
    "b": r"mine\.wake_word\.load",
    "a": r"mine\.asleep\.fetch_add",
    "f": r"fence_everywhere\(\)",
    "l": r"if \(!ready\(\) && !broken\(\)\)",
    "w": r"futex_wait\(mine\.wake_word",
}


@pytest.mark.parametrize(
    ("wakers", "messages", "sleepers"), [(1, 1, 1), (1, 3, 1), (2, 1, 1), (2, 2, 1), (1, 2, 2), (2, 1, 2)]
)
def test_no_wake_up_is_lost(wakers, messages, sleepers):
    result = search(PROTOCOL, wakers=wakers, messages=messages, sleepers=sleepers)
    assert result.lost == 0
    assert result.states > 10


@pytest.mark.parametrize(
    ("protocol", "mistake"),
    [
        ("balw", "no fence"),
        ("bfalw", "the fence before the announcement"),
        ("balfw", "the fence after the last look"),
        ("aflbw", "the wake word read after the last look"),
        ("bflwa", "the announcement after sleeping"),
    ],
)
def test_the_model_finds_the_lost_wake_up_of_a_wrong_protocol(protocol, mistake):
    assert search(protocol, wakers=1, messages=1, sleepers=1).lost > 0, mistake


def test_the_engine_takes_the_steps_of_the_model_in_their_order():
    code = WAITING.read_text()
    code = code[code.index("void Endpoint::wait_slowly") : code.index("void Endpoint::send_slowly")]
    found = [match.start() for letter in PROTOCOL for match in re.finditer(STEPS_IN_CODE[letter], code)]
    assert len(found) == len(PROTOCOL)
    assert found == sorted(found)
