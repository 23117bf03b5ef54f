from __future__ import annotations

import json

import numpy as np

from stories import CLOCK, check_structure
from unisono.tracing.chrome import LANES, lines_of, microseconds
from unisono.tracing.events import EVENT, FAILED, IN_BACKGROUND, Moment, Tape
from unisono.tracing.facts import InstructionFacts, Origin, Part, PlanFacts
from unisono.tracing.files import write_trace

SEND = InstructionFacts("send", 3, (), (1, 2), "4", (100,))
COPY = InstructionFacts("copy", 4, (), (), "5", (100,))
PLAN = PlanFacts("a call", "all_gather", "ring", "d", "uint8", 100, 100, 2, 60, (SEND, COPY))
NOTHING = Tape(np.array([], EVENT), 0)


def events_of(collectives=(), transfers=(), plans=None, number=0, dropped=0):
    origin = Origin("r", "c", 0, 3, 10, (10, 11, 12), 0, number)
    part = Part(origin, {7: PLAN} if plans is None else plans, {}, CLOCK, 0, 0, 10**6)
    tapes = Tape(np.array(list(collectives), EVENT), dropped), Tape(np.array(list(transfers), EVENT), 0)
    header, lines = lines_of(part, *tapes)
    return header, [json.loads(line) for line in lines]


def whole_call(number=1, begin=1000):
    """Return the events of a call of two passes; in the second pass the send waits for room."""
    return [
        (begin, begin + 10, number, 7, 0, 0, Moment.INSTRUCTION, 0),
        (begin + 10, begin + 20, number, 7, 1, 0, Moment.INSTRUCTION, 0),
        (begin + 20, begin + 50, number, 7, 0, 1, Moment.AWAITS_ROOM, 2),
        (begin + 20, begin + 60, number, 7, 0, 1, Moment.INSTRUCTION, 0),
        (begin + 60, begin + 70, number, 7, 1, 1, Moment.INSTRUCTION, 0),
        (begin, begin + 70, number, 7, 0, 1, Moment.CALL, 0),
    ]


def slices(events, category):
    return [event for event in events if event["ph"] == "X" and event["cat"] == category]


def test_a_call_is_a_slice_that_contains_its_ops_and_waits():
    _, events = events_of(whole_call())
    (call,) = slices(events, "call")
    assert (call["name"], call["ts"], call["dur"]) == ("all_gather/ring", 1.00025, 0.07025)
    assert call["args"]["ops"] == 2
    assert [op["name"] for op in slices(events, "op")] == ["send to 1, 2", "copy"] * 2
    assert [op["args"]["bytes"] for op in slices(events, "op")] == [60, 60, 40, 40]  # the rest in the second pass


def test_the_slice_of_an_op_begins_after_its_waits():
    _, events = events_of(whole_call())
    (wait,), third = slices(events, "wait"), slices(events, "op")[2]
    assert (wait["name"], wait["args"]["for"], wait["args"]["peer"]) == ("wait until rank 2 has read", "room", 2)
    assert (third["ts"], third["dur"]) == (1.05025, 0.01025)


def test_a_message_to_several_ranks_has_a_flow_to_each():
    _, events = events_of(whole_call())
    flows = [event for event in events if event["ph"] == "s"]
    assert len({flow["id"] for flow in flows}) == 4  # two passes, two readers


def test_a_call_whose_beginning_was_dropped_is_marked_as_truncated():
    header, events = events_of(whole_call()[2:], dropped=2)
    assert slices(events, "call")[0]["args"]["truncated"] == 2
    assert header["dropped"] == 2


def test_an_unfinished_call_is_written_up_to_its_last_event():
    _, events = events_of(whole_call()[:4])
    (call,) = slices(events, "call")
    assert call["args"]["unfinished"] is True
    assert (call["ts"], call["dur"]) == (1.00025, 0.06025)


def test_failed_calls_and_background_calls_are_marked():
    failed = (*whole_call()[-1][:4], FAILED | IN_BACKGROUND, 1, Moment.CALL, 0)
    _, events = events_of([*whole_call()[:3], failed])
    args = slices(events, "call")[0]["args"]
    assert args["failed"] is True
    assert args["background"] is True
    assert "truncated" not in args


def test_events_of_an_unknown_call_count_as_dropped():
    header, events = events_of(whole_call(), plans={})
    assert header["dropped"] == 6
    assert slices(events, "call") == []


def test_simultaneous_transfers_are_in_separate_lanes():
    transfers = [
        (100, 200, 0, 8, 5, 0, Moment.SEND, 1),
        (150, 300, 0, 8, 5, 0, Moment.RECEIVE, 2),
        (210, 250, 1, 8, 5, 0, Moment.SEND, 1),
    ]
    _, events = events_of((), transfers, number=2)
    assert [event["tid"] - 2 * LANES for event in slices(events, "transfer")] == [1, 1, 2]
    names = {event["tid"] - 2 * LANES: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert set(names) == {1, 2}
    assert all(name.startswith("send and recv of communicator 2") for name in names.values())


def test_the_file_has_the_structure_that_viewers_require(tmp_path):
    header, _ = events_of()
    origin = Origin("r", "c", 0, 3, 10, (10, 11, 12), 0, 0)
    part = Part(origin, {7: PLAN}, {}, CLOCK, 0, 0, 10**6)
    tape = Tape(np.array([*whole_call(), *whole_call(2, 2000)], EVENT), 0)
    write_trace(tmp_path / "t.json", [header], lines_of(part, tape, NOTHING)[1])
    assert check_structure(tmp_path / "t.json", whole=False)["X"] == 12


def test_a_reader_that_truncates_gets_exact_nanoseconds():
    """Even after weeks."""
    for ns in (0, 1, 999, 123_456_789, 37_481_825_166_093, 30 * 24 * 3600 * 10**9 + 7):
        assert int(microseconds(ns) * 1000) == ns
