"""The programs of size 5 are unchanged. `make golden` rewrites them; inspect the difference before committing."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders import NAMES
from unisono import find, prove
from unisono.schedule.text import format_schedule, parse_schedule

GOLDEN = Path(__file__).parent.parent / "golden"


def path_of(name: str) -> Path:
    return GOLDEN / f"{name.replace('/', '-')}.txt"


@pytest.mark.parametrize("name", NAMES)
def test_the_schedule_for_five_ranks_has_not_changed(name):
    assert format_schedule(find(name).schedule(5)) == path_of(name).read_text()


@pytest.mark.parametrize("name", NAMES)
def test_the_golden_text_itself_is_proved(name):
    prove(parse_schedule(path_of(name).read_text()))


def test_every_golden_file_belongs_to_an_algorithm():
    assert sorted(GOLDEN.glob("*.txt")) == sorted(path_of(name) for name in NAMES)
