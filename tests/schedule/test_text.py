from __future__ import annotations

import re

import pytest

from builders import NAMES
from unisono import find, play, prove
from unisono.errors import ScheduleError, UsageError
from unisono.schedule.text import format_schedule, parse_schedule
from unisono.verifier import trees

GOOD = """unisono schedule 1
collective all_reduce
algorithm mine
size 2
chunks 1
slots 1
rank 0
  1: send 0 to 1; recv_reduce 0 from 1
rank 1
  1: send 0 to 0; recv_reduce 0 from 0
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_written_schedule_is_parsed_unchanged(name):
    for size in (1, 2, 5, 6):
        text = format_schedule(find(name).schedule(size))
        again = parse_schedule(text)
        assert format_schedule(again) == text
        for rank in range(size):
            assert list(again.program(rank)) == list(find(name).schedule(size).program(rank))


def test_the_root_is_written_and_parsed():
    schedule = find("broadcast/tree").schedule(5, root=3)
    assert "\nroot 3\n" in format_schedule(schedule)
    assert parse_schedule(format_schedule(schedule)).root == 3


def test_comments_and_blank_lines_are_skipped():
    commented = GOOD.replace("size 2", "size 2   # two of them\n\n# and no more")
    assert format_schedule(parse_schedule(commented)) == GOOD


def test_steps_are_numbered_from_1_and_a_file_of_an_earlier_version_that_numbers_them_from_0_can_be_read():
    text = format_schedule(find("ring").schedule(3))
    assert re.findall(r"^  (\d+):", text, re.MULTILINE) == ["1", "2", "3", "4"] * 3
    old = re.sub(r"(?m)^  (\d+):", lambda match: f"  {int(match[1]) - 1}:", text)
    assert format_schedule(parse_schedule(old)) == text
    with pytest.raises(UsageError, match="line 9: expected line `1: "):
        parse_schedule(old.replace("  1:", "  2:", 1))


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("unisono schedule 1", "unisono schedule 9", "schedule in text form, which begins with"),
        ("size 2", "size two", "line 4: expected a line such as"),
        ("size 2", "size 2\nsize 2", "line 5"),
        ("chunks 1\n", "", "no line `chunks"),
        (
            "rank 1\n  1: send 0 to 0; recv_reduce 0 from 0\n",
            "",
            r"programs for ranks \[0\]; expected programs for 2 ranks, numbered from 0",
        ),
        ("rank 1", "rank 0", "line 9: expected rank 0 only once"),
        ("  1: send 0 to 1", "  2: send 0 to 1", "line 8: expected line `1: ...`"),
        ("send 0 to 1", "send 0 from 1", "line 8: expected ops of the forms"),
        ("send 0 to 1", "push 0 to 1", "line 8"),
        ("send 0 to 1", "send 0--1 to 1", "line 8: expected chunks such as"),
        ("send 0 to 1", "send 5-3 to 1", "line 8: expected chunks such as"),
        ("send 0 to 1", "send 0-999999999,7 to 1", "line 8: expected at most"),
    ],
)
def test_a_damaged_text_is_rejected_with_the_line(old, new, complaint):
    with pytest.raises(UsageError, match=complaint):
        parse_schedule(GOOD.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("size 2", "size 2\nroot 1", "root 1; expected none"),
        ("chunks 1", "chunks 0", "0 chunks for 2 ranks"),
        ("slots 1", "slots 0", "0 slots; expected at least 1"),
        ("collective all_reduce", "collective all_gather", "1 chunks for 2 ranks; expected a multiple of 2"),
        ("collective all_reduce", "collective broadcast", "no root; expected one"),
    ],
)
def test_a_text_that_cannot_be_a_schedule_of_its_collective_is_rejected(old, new, complaint):
    schedule = parse_schedule(GOOD.replace(old, new, 1))
    for use in (prove, lambda schedule: play(schedule, [[1], [2]]), trees):
        with pytest.raises(UsageError, match=complaint):
            use(schedule)


def test_a_text_without_ranks_is_rejected():
    with pytest.raises(UsageError, match="expected programs for 0 ranks"):
        parse_schedule(GOOD.split("rank 0")[0].replace("size 2", "size 0"))


def test_a_message_of_a_billion_chunks_is_rejected_at_once():
    with pytest.raises(ScheduleError, match="there is no chunk 999999999"):
        prove(parse_schedule(GOOD.replace("send 0 to 1", "send 0-999999999 to 1")))
