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


@st.composite
def programs_of_ranks(draw):
    """Draw messages in one order; every rank sends and receives its own in that order."""
    size = draw(st.sampled_from([1, 2, 3, 5, 6, 7, 8, 13]))
    messages = draw(st.lists(st.tuples(st.integers(0, 99), st.integers(1, 99), st.booleans()), max_size=40))
    actions: list[list[dict[str, int]]] = [[] for _ in range(size)]
    sent: list[tuple[int, int]] = []
    for number, (start, distance, fused) in enumerate(messages if size > 1 else []):
        source, target = start % size, (start + 1 + distance % (size - 1)) % size
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
    none = np.zeros(count)
    costs = Costs(
        passes=passes, tracks=draw(st.integers(1, min(passes, 4))), ports=draw(st.integers(1, 2)),
        receive_overhead_s=ticks(count, most_busy), receive_copy_s=ticks((2, count), most_busy),
        reduce_s=np.zeros((2, count)), send_overhead_s=none, send_copy_s=np.zeros((2, count)), latency_s=none,
        transfer_s=np.zeros((2, count)), flight_s=np.where(receives, ticks(count, most_flight), 0.0),
        occupied_s=occupied, leaving_s=leaving, rendezvous_s=rendezvous, message_bytes=np.zeros((2, count)),
        link_bytes=np.where(receives, 1000.0 * random.integers(0, 4, (2, count)), 0.0),
        pair=np.where(receives, random.integers(0, pairs, count), -1), routes=routes,
        weights=random.integers(1, 4, routes.shape) if draw(st.booleans()) else None,
    )  # fmt: skip
    return costs, 1e9 * random.integers(1, 4, links)


@pytest.mark.skipif(events._engine is None, reason="the extension is not built")
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_both_loops_compute_the_same_times_for_random_programs(data):
    programs = data.draw(programs_of_ranks())
    costs, bandwidth = data.draw(costs_of_programs(programs))
    depth = data.draw(st.sampled_from([None, 1, 2, 8]))
    room = None if depth is None else room_of(programs, depth)
    for shared in (None, bandwidth):
        native = events.run(programs, costs, room, shared)
        python = events.run_in_python(programs, costs, room, shared)
        assert (native is None) == (python is None)
        if native is None:
            continue
        for name in ("start", "end", "leave", "arrival", "level"):
            assert np.array_equal(getattr(native.times, name), getattr(python.times, name)), name
        unrecorded = events.run(programs, costs, room, shared, record=False)
        assert np.array_equal(unrecorded.unit_s, python.unit_s)
