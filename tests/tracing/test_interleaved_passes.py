"""Several passes of a call may be in progress at a time: their events interleave, and they end in any order."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from stories import CLOCK, call, check_structure, group, op, rank_call, wait
from trace_parts import NOTHING
from unisono.tracing import read_run, summary
from unisono.tracing.chrome import lines_of
from unisono.tracing.critical_path import critical_path
from unisono.tracing.events import EVENT, Moment, Tape
from unisono.tracing.facts import InstructionFacts, Origin, Part, PlanFacts
from unisono.tracing.files import part_path, parts_in, write_trace
from unisono.tracing.joining import join
from unisono.tracing.matching import messages_of
from unisono.tracing.timeline import timeline_of
from unisono.tracing.waiting import blames

PASSES = 3
# The waits are for the oldest pass, but the message of a later pass arrives first. An instruction begins when the one
# before it ends, as the engine records it. (pass, instruction, kind, begin, end)
ORDER_OF_0 = [
    (0, 0, "op", 1000, 1010), (1, 0, "op", 1010, 1020), (2, 0, "op", 1020, 1030), (0, 1, "wait", 1030, 1100),
    (1, 1, "op", 1030, 1110), (0, 1, "wait", 1110, 1140), (0, 1, "op", 1110, 1150), (2, 1, "op", 1150, 1160),
]  # fmt: skip
ORDER_OF_1 = [
    (0, 0, "wait", 1000, 1050), (1, 0, "op", 1000, 1060), (1, 1, "op", 1060, 1080), (0, 0, "op", 1080, 1090),
    (2, 0, "op", 1090, 1100), (0, 1, "op", 1100, 1130), (2, 1, "op", 1130, 1140),
]  # fmt: skip


def plan(rank):
    """Return a plan of two ranks: rank 0 sends a chunk to rank 1, which sends it back."""
    send = InstructionFacts("send", rank, (), (1 - rank,), "0", (300,))
    receive = InstructionFacts("receive", 1 - rank, (1 - rank,), (), "0", (300,))
    instructions = (receive, send) if rank else (send, receive)
    return PlanFacts("a call", "broadcast", "there_and_back", "digest", "uint8", 300, 300, PASSES, 100, instructions)


def write_rank(folder, rank, order):
    events = [
        (begin, end, 1, 7, at, number, Moment.AWAITS_MESSAGE if kind == "wait" else Moment.INSTRUCTION, 1 - rank)
        for number, at, kind, begin, end in order
    ]
    events.append((990, order[-1][-1], 1, 7, 0, 0, Moment.CALL, 0))
    origin = Origin("r", "c", rank, 2, 100 + rank, (100, 101), rank, 0)
    part = Part(origin, {7: plan(rank)}, {}, CLOCK, 500, 900, 5000)
    header, lines = lines_of(part, Tape(np.array(events, EVENT), 0), NOTHING)
    write_trace(part_path(folder, header), [header], lines)


def interleaved(folder):
    write_rank(folder, 0, ORDER_OF_0)
    write_rank(folder, 1, ORDER_OF_1)
    join(parts_in(folder), folder / "run.json")
    check_structure(folder / "run.json")
    return read_run(folder)


def test_every_op_and_message_is_found_and_no_op_overlaps_a_wait(tmp_path):
    (found,) = interleaved(tmp_path).communicators
    (one,) = found.calls
    assert one.ranks[0].whole
    assert one.ranks[1].whole
    for rank in one.ranks.values():
        assert len(rank.ops) == 2 * PASSES
        spans = sorted((each.begin_ns, each.end_ns) for each in [*rank.ops, *rank.waits])
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
    messages = messages_of(one)
    assert len(messages) == 2 * PASSES
    for message in messages:
        assert message.sent.number_of_pass == message.received.number_of_pass
        assert message.received.end_ns > message.sent.begin_ns


def test_the_critical_path_follows_time_not_the_numbers_of_passes(tmp_path):
    (found,) = interleaved(tmp_path).communicators
    path = critical_path(found.calls[0])
    begins = [stretch.begin_ns for stretch in path]
    assert begins == sorted(begins)
    assert path[-1].op is not None
    assert (path[-1].op.number_of_pass, path[-1].op.end_ns) == (2, 1160 - 500)  # the last op in time
    assert sum(stretch.ns for stretch in path) == 1160 - 990  # without gaps or overlaps


def test_an_op_whose_message_ended_the_wait_for_another_pass_depends_on_that_message():
    late = call(
        rank_call(0, 0, 60, op(0, "send", 40, 50, to=[1], number_of_pass=1), op(0, "send", 50, 60, to=[1])),
        rank_call(
            1, 0, 90, op(1, "receive", 52, 62, sources=[0], number_of_pass=1),
            op(1, "receive", 62, 90, wait(1, 0, 0, 52), sources=[0]),
        ),
    )  # fmt: skip
    late.ops_in_pass.update({0: 1, 1: 1})
    path = critical_path(late)
    assert [(stretch.rank, stretch.what) for stretch in path] == [
        (0, "begin"), (0, "work"), (1, "transit"), (1, "work"), (1, "work"),
    ]  # fmt: skip


def test_timelines_summaries_and_causes_of_waits_are_computed(tmp_path):
    run = interleaved(tmp_path)
    line = timeline_of(run.communicators[0])
    assert len(line.ops["begin"]) == 4 * PASSES
    assert (np.diff(line.ops["begin"]) >= 0).all()
    assert sum(blame.ns for blame in blames(run.communicators[0])) <= 50 + 70 + 30
    assert "all_reduce" not in summary(run)
    assert "broadcast/there_and_back" in summary(run)


def test_waits_that_overlap_are_followed_to_their_causes():
    waits = [wait(1, 2, 0, 100), wait(1, 2, 10, 20), wait(1, 2, 30, 90)]
    story = group(
        3,
        call(
            rank_call(0, 0, 110, op(0, "receive", 105, 110, wait(0, 1, 50, 105), sources=[1])),
            rank_call(1, 0, 105, op(1, "send", 100, 105, waits[0], to=[0]), waits=waits[1:]),
            rank_call(2, 0, 100, op(2, "send", 0, 100, to=[1])),
        ),
    )
    because = {(one.waiter, one.culprit): one.ns for one in blames(story)}
    assert because[0, 2] == 50  # the wait of rank 1 that began first lasted the longest
