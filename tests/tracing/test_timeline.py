from __future__ import annotations

import numpy as np

from stories import call as made_call
from stories import group, op, rank_call, ring_of_three
from unisono.tracing.timeline import HOW, REASONS, WHAT, timeline_of

LINE = timeline_of(group(3, ring_of_three(late=1, at=5000), ring_of_three(late=2, at=9000, number=2)))


def rows(columns, *names):
    return list(zip(*(columns[name].tolist() for name in names), strict=True))


def test_times_begin_with_the_first_call():
    assert [(call["number"], call["begin"], call["end"]) for call in LINE.calls] == [(1, 0, 130), (2, 4000, 4120)]
    assert LINE.calls[0]["label"] == "all_reduce/ring"


def test_every_op_has_its_call_rank_kind_and_times():
    found = rows(LINE.ops, "call", "rank", "detail", "begin", "end")
    first = [(call, rank, LINE.details[detail].kind, *times) for call, rank, detail, *times in found if call == 0]
    assert first == [(0, 1, "send", 100, 110), (0, 2, "reduce", 110, 120), (0, 0, "reduce", 120, 130)]


def test_common_properties_of_ops_are_stored_once():
    """Two calls have three ops each, and every op of the second has the same description as one of the first."""
    assert len(LINE.ops["detail"]) == 6
    assert [(one.kind, one.sources, one.to) for one in LINE.details] == [
        ("send", (), (2,)), ("reduce", (1,), (0,)), ("reduce", (2,), ()),
    ]  # fmt: skip


def test_a_message_connects_two_ops():
    for call, sent, received in rows(LINE.messages, "call", "sent", "received"):
        assert LINE.ops["call"][sent] == LINE.ops["call"][received] == call
        assert LINE.ops["begin"][sent] < LINE.ops["begin"][received]
    assert len(LINE.messages["sent"]) == 4


def test_the_critical_path_names_its_ops():
    """In the second call, rank 2 entered after the message of rank 1 had arrived."""
    work = [row for row in rows(LINE.path, "call", "rank", "op", "what") if row[3] == WHAT.index("work")]
    assert [row[:3] for row in work] == [(0, 1, 0), (0, 2, 1), (0, 0, 2), (1, 2, 4), (1, 0, 5)]
    assert rows(LINE.path, "call", "rank", "what", "op", "begin", "end")[0] == (
        0,
        1,
        WHAT.index("begin"),
        -1,
        100,
        100,
    )


def test_the_timeline_has_the_waits_and_their_causes():
    assert rows(LINE.waits, "call", "rank", "peer", "reason", "begin", "end")[0] == (
        0, 0, 2, REASONS.index("message"), 0, 120,
    )  # fmt: skip
    causes = rows(LINE.blames, "call", "waiter", "culprit", "how", "ns")
    assert (1, 0, 2, HOW.index("late"), 100) in causes


def test_the_timeline_has_every_call_of_every_rank_with_its_times():
    assert (0, 1, 100, 110, 0, 0) in rows(LINE.entered, "call", "rank", "begin", "end", "background", "failed")
    assert len(LINE.entered["call"]) == 6


def test_a_group_without_events_has_empty_columns():
    empty = timeline_of(group(2))
    assert all(len(column) == 0 for column in empty.ops.values())
    assert set(empty.waits) == {"call", "rank", "peer", "reason", "begin", "end"}


def test_columns_contain_integers():
    one = timeline_of(group(1, made_call(rank_call(0, 0, 10, op(0, "copy", 0, 10)))))
    assert all(column.dtype == np.int64 for column in one.ops.values())
