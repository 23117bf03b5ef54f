"""The native event loop computes the times of the loop in Python, to the bit, for random programs too.

Few different times and sizes are drawn, so that much happens at the same time.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unisono.simulator import events
from unisono.simulator.actions import ACTION, NOTHING, REDUCE_KIND, SEND_KIND, Programs, room_of
from unisono.simulator.costs import Costs

TICK_S = 2.0**-20
needs_extension = pytest.mark.skipif(events._engine is None, reason="the extension is not built")


def programs_of(size, messages):
    """Return the programs of messages ``(source, target, fused)``; every rank sends and receives in their order.

    A message that is ``fused`` is sent by the action that its sender executes before, if that sends nothing else.
    """
    actions: list[list[dict[str, int]]] = [[] for _ in range(size)]
    sent: list[tuple[int, int]] = []
    for number, (source, target, fused) in enumerate(messages):
        program = actions[source]
        if not fused or not program or program[-1]["to"] != NOTHING:
            program.append({"to": NOTHING, "source": NOTHING, "message": NOTHING, "step": len(program) // 2})
        program[-1]["to"] = target
        sent.append((source, len(program) - 1))
        actions[target].append(
            {"to": NOTHING, "source": source, "message": number, "step": len(actions[target]) // 2}
        )
    first = np.cumsum([0] + [len(program) for program in actions])
    flat = [action for program in actions for action in program]
    rows = np.zeros(len(flat), ACTION)
    for index, action in enumerate(flat):
        kind = SEND_KIND if action["source"] == NOTHING else REDUCE_KIND
        rows[index] = (kind, False, False, action["to"], action["source"], 1, action["step"], action["step"])
    sender = [
        first[sent[each["message"]][0]] + sent[each["message"]][1] if each["message"] >= 0 else -1 for each in flat
    ]
    return Programs(
        size, np.arange(size), np.ones(size, np.int64), first.astype(np.int64), rows, np.array(sender, np.int64)
    )


@st.composite
def programs_of_ranks(draw):
    """Draw messages between ranks."""
    size = draw(st.sampled_from([1, 2, 3, 5, 6, 7, 8, 13]))
    messages = draw(st.lists(st.tuples(st.integers(0, 99), st.integers(1, 99), st.booleans()), max_size=40))
    return programs_of(
        size,
        [
            (start % size, (start + 1 + distance % (size - 1)) % size, fused)
            for start, distance, fused in (messages if size > 1 else [])
        ],
    )


def costs_of_times(count, **given):
    """Return the costs of ``count`` actions; what is not given takes no time, and no message uses a rendezvous."""
    none, none_per_pass = np.zeros(count), np.zeros((2, count))
    return Costs(
        **{
            "receive_overhead_s": none, "receive_copy_s": none_per_pass, "reduce_s": none_per_pass,
            "send_overhead_s": none, "send_copy_s": none_per_pass, "latency_s": none, "transfer_s": none_per_pass,
            "flight_s": none, "occupied_s": none_per_pass, "leaving_s": none_per_pass,
            "rendezvous_s": none_per_pass - 1.0, "message_bytes": none_per_pass, "link_bytes": none_per_pass,
            "pair": np.zeros(count, np.int64), "routes": np.zeros((1, 1), np.int32), "weights": None, **given,
        }
    )  # fmt: skip


@st.composite
def costs_of_programs(draw, programs):
    """Draw the time of every action and message, and a route for every message."""
    count, receives = len(programs.rows), programs.rows["source"] >= 0
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    most_busy, most_flight = draw(st.integers(0, 2)), draw(st.integers(0, 3))
    passes = draw(st.integers(1, 6))

    def ticks(shape, most):
        return random.integers(0, most + 1, shape) * TICK_S

    rendezvous = np.full((2, count), -1.0)
    if draw(st.booleans()):
        rendezvous = np.where(receives, random.integers(-1, 3, (2, count)) * TICK_S, -1.0)
    occupied = np.where(receives, ticks((2, count), 3), 0.0)
    leaving = np.zeros((2, count))
    for which in (0, 1):
        np.maximum.at(leaving[which], programs.sender[receives], occupied[which][receives])
    links, pairs, hops = draw(st.integers(1, 8)), draw(st.integers(1, 12)), draw(st.integers(1, 4))
    routes = np.full((pairs, hops), -1, dtype=np.int32)
    for route in routes:
        used = random.permutation(links)[: random.integers(1, hops + 1)]
        route[: len(used)] = used
    costs = costs_of_times(
        count, passes=passes, tracks=draw(st.integers(1, min(passes, 4))), ports=draw(st.integers(1, 2)),
        receive_overhead_s=ticks(count, most_busy), receive_copy_s=ticks((2, count), most_busy),
        flight_s=np.where(receives, ticks(count, most_flight), 0.0),
        occupied_s=occupied, leaving_s=leaving, rendezvous_s=rendezvous,
        link_bytes=np.where(receives, 1000.0 * random.integers(0, 4, (2, count)), 0.0),
        pair=np.where(receives, random.integers(0, pairs, count), -1), routes=routes,
        weights=random.integers(1, 4, routes.shape) if draw(st.booleans()) else None,
    )  # fmt: skip
    return costs, 1e9 * random.integers(1, 4, links)


def times_of_both(programs, costs, room, bandwidth):
    """Return the times of the loop in Python, or None after a deadlock, once the native loop has found the same."""
    native = events.run(programs, costs, room, bandwidth)
    python = events.run_in_python(programs, costs, room, bandwidth)
    assert (native is None) == (python is None)
    if python is None:
        return None
    for name in ("start", "end", "leave", "arrival", "level"):
        assert np.array_equal(getattr(native.times, name), getattr(python.times, name)), name
    unrecorded = events.run(programs, costs, room, bandwidth, record=False)
    assert np.array_equal(unrecorded.unit_s, python.unit_s)
    return python.times


@needs_extension
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_both_loops_compute_the_same_times_for_random_programs(data):
    programs = data.draw(programs_of_ranks())
    costs, bandwidth = data.draw(costs_of_programs(programs))
    depth = data.draw(st.sampled_from([None, 1, 2, 8]))
    room = None if depth is None else room_of(programs, depth)
    for shared in (None, bandwidth):
        times_of_both(programs, costs, room, shared)


@needs_extension
@pytest.mark.parametrize("tracks", [1, 2, 3])
def test_a_sender_continues_when_the_channel_that_it_awaits_has_room_whatever_it_knows_of_others(tracks):
    """Rank 2 begins to read at once and takes long; rank 1 begins later and has read its message before rank 2."""
    programs = programs_of(3, [(0, 1, False), (0, 2, False)])
    read_by_1, read_by_2 = 2, 3
    busy, flight = np.zeros(4), np.zeros(4)
    busy[read_by_1], busy[read_by_2], flight[read_by_1] = 1 * TICK_S, 10 * TICK_S, 4 * TICK_S
    costs = costs_of_times(4, passes=tracks + 1, tracks=tracks, ports=1, receive_overhead_s=busy, flight_s=flight)
    for bandwidth in (None, np.array([1e9])):
        times = times_of_both(programs, costs, room_of(programs, 1), bandwidth)
        assert times.start[tracks, 0] == 5 * TICK_S  # the first pass that needs room
        assert times.start[tracks, 1] == 10 * TICK_S


@needs_extension
def test_a_sender_that_awaits_room_in_several_channels_continues_when_the_last_of_them_has_it():
    """One action sends to ranks 1 and 2, and rank 1 knows first when it will have read its message."""
    programs = programs_of(3, [(0, 1, False), (0, 2, False)])
    first, sender = np.array([0, 1, 2, 3]), np.array([-1, 0, 0])
    programs = Programs(3, programs.ranks, programs.counts, first, programs.rows[1:], sender)
    busy, flight = np.array([0.0, 3.0, 1.0]) * TICK_S, np.array([0.0, 0.0, 6.0]) * TICK_S
    costs = costs_of_times(3, passes=3, tracks=2, ports=1, receive_overhead_s=busy, flight_s=flight)
    for bandwidth in (None, np.array([1e9])):
        times = times_of_both(programs, costs, room_of(programs, 1), bandwidth)
        assert times.start[2, 0] == 7 * TICK_S
