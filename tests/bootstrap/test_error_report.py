"""Errors of several ranks are folded into one text that names the ranks and shows the user's frames."""

from __future__ import annotations

import pytest

import unisono
from unisono.bootstrap.error_report import fold, name_ranks, report_of, user_traceback
from unisono.errors import Aborted, InternalError, PeerLost, UsageError
from unisono.message import CHINESE, translated


@pytest.mark.parametrize(
    ("ranks", "name"),
    [
        ([1], "rank 1 of 8"),
        ([0, 1, 2], "ranks 0-2 of 8"),
        ([0, 2, 3, 7], "ranks 0, 2-3, 7 of 8"),
        ([*range(8)], "all 8 ranks"),
    ],
)
def test_ranks_are_named_as_ranges(ranks, name):
    assert name_ranks(ranks, 8) == name
    assert "rank" in translated(name_ranks(ranks, 8), CHINESE)


def raised(error):
    try:
        raise error
    except BaseException as caught:
        return caught


def test_equal_errors_are_shown_once():
    reports = [report_of(rank, raised(UsageError("no such thing"))) for rank in (2, 0, 1)]
    text = fold(reports, 3)
    assert text.startswith("error on all 3 ranks:\nTraceback (most recent call last):\n")
    assert text.endswith("\nunisono.errors.UsageError: no such thing\n")
    assert text.count("no such thing") == 1


def test_consequences_follow_the_error_in_a_line_each():
    reports = [
        report_of(0, raised(Aborted("rank 1 aborted", rank=1))),
        report_of(1, raised(UsageError("no such thing"))),
        report_of(2, raised(Aborted("rank 1 aborted", rank=1))),
    ]
    text = fold(reports, 3)
    assert text.startswith("error on rank 1 of 3:\nTraceback")
    assert text.endswith("UsageError: no such thing\nranks 0, 2 of 3: Aborted: rank 1 aborted\n")
    assert text.count("Traceback") == 1


def test_consequences_without_their_cause_are_shown_with_a_traceback():
    text = fold([report_of(rank, raised(PeerLost("rank 1 has died", rank=1))) for rank in (0, 2)], 3)
    assert text.startswith("error on ranks 0, 2 of 3:\nTraceback")
    assert text.count("rank 1 has died") == 1


def test_an_interrupt_is_one_line_and_its_consequences_are_left_out():
    reports = [report_of(0, raised(Aborted("rank 1 was interrupted", rank=1))), report_of(1, KeyboardInterrupt())]
    assert fold(reports, 2) == "rank 1 of 2: interrupted\n"
    error = report_of(0, raised(UsageError("no such thing")))
    assert "no such thing" in fold([error, reports[1]], 2)


def call_the_library():
    with pytest.raises(UsageError) as caught:
        unisono.find("no_such_algorithm")
    return caught.value


def test_frames_of_the_library_are_hidden_and_those_of_the_user_stay():
    error = call_the_library()
    text = user_traceback(error)
    assert "in call_the_library" in text
    assert "/src/unisono/" not in text.replace("\\", "/")
    assert text.rstrip().endswith(str(error))
    assert str(error) not in user_traceback(error, message=False)


def test_an_internal_error_keeps_all_frames():
    error = call_the_library()
    internal = InternalError("a bug").with_traceback(error.__traceback__)
    assert "unisono/algorithms" in user_traceback(internal)
