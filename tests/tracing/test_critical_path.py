from __future__ import annotations

from itertools import pairwise

import pytest

from stories import call, op, rank_call, ring_of_three, wait
from unisono.tracing.critical_path import critical_path


def seen(path):
    return [(one.rank, one.what, one.ns) for one in path]


def test_the_path_follows_the_messages_from_rank_to_rank():
    assert seen(critical_path(ring_of_three(late=1))) == [
        (1, "begin", 0), (1, "work", 10), (2, "transit", 0), (2, "work", 10), (0, "transit", 0), (0, "work", 10),
    ]  # fmt: skip


@pytest.mark.parametrize("late", [0, 1, 2])
def test_the_path_begins_on_the_rank_that_delayed_the_others(late):
    first = critical_path(ring_of_three(late=late))[0]
    assert (first.rank, first.what, first.begin_ns) == (late, "begin", 100)


def test_the_path_has_no_gaps_up_to_the_end_of_the_call():
    one = ring_of_three(late=2)
    path = critical_path(one)
    assert path[-1].end_ns == one.end_ns
    for before, after in pairwise(path):
        assert before.end_ns == after.begin_ns


def test_the_path_continues_from_a_wait_for_room_to_the_reader():
    """Rank 0 sends twice, and the second send must wait until rank 1 has read the first message."""
    read = op(1, "receive", 50, 60, sources=[0])
    again = op(1, "receive", 85, 95, wait(1, 0, 60, 85), sources=[0], instruction=1)
    first = op(0, "send", 0, 10, to=[1])
    second = op(0, "send", 65, 80, wait(0, 1, 10, 65, "room"), to=[1], instruction=1)
    one = call(rank_call(0, 0, 80, first, second), rank_call(1, 45, 95, read, again))
    assert seen(critical_path(one)) == [
        (1, "begin", 5), (1, "work", 10), (0, "room", 5), (0, "work", 15), (1, "transit", 5), (1, "work", 10),
    ]  # fmt: skip


def test_a_path_can_end_with_a_wait_for_the_entry_of_other_ranks():
    sent = op(0, "send", 0, 10, to=[1])
    late = rank_call(1, 70, 90, op(1, "receive", 75, 85, sources=[0]))
    one = call(rank_call(0, 0, 95, sent, waits=[wait(0, 1, 10, 95, "entry")]), late, collective="broadcast")
    assert seen(critical_path(one)) == [(0, "entry", 25)]


def test_inconsistent_clocks_do_not_make_the_path_cyclic():
    """Each of two ranks seems to have waited for the other."""
    first = op(0, "reduce", 50, 60, wait(0, 1, 0, 50), sources=[1], to=[1])
    second = op(1, "reduce", 50, 60, wait(1, 0, 0, 50), sources=[0], to=[0])
    path = critical_path(call(rank_call(0, 0, 60, first), rank_call(1, 0, 60, second)))
    assert 2 <= len(path) <= 6


def test_a_call_without_ops_has_no_path():
    assert critical_path(call(rank_call(0, 0, 1))) == []
