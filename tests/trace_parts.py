"""Artificial traces of two ranks: rank 0 sends to rank 1, in two calls."""

from __future__ import annotations

import numpy as np

from stories import CLOCK
from unisono.tracing.chrome import lines_of
from unisono.tracing.events import EVENT, Moment, Tape
from unisono.tracing.facts import InstructionFacts, Origin, Part, PlanFacts
from unisono.tracing.files import part_path, write_trace

NOTHING = Tape(np.array([], EVENT), 0)


def plan(rank):
    """Return a plan of two ranks: rank 0 sends two chunks to rank 1."""
    sends = InstructionFacts("send", 0, (), (1,), "0-1", (40, 40))
    receives = InstructionFacts("receive", 0, (0,), (), "0-1", (40, 40))
    return PlanFacts(
        "a call", "broadcast", "naive", "digest", "float32", 20, 80, 1, 80, (receives if rank else sends,), root=0
    )


def tape(rank, dropped=0):
    """Return the events of two calls; the receiver waits in the first one."""
    events = []
    for call, begin in ((1, 1000), (2, 3000)):
        waits = rank == 1 and call == 1
        if waits:
            events.append((begin, begin + 700, call, 7, 0, 0, Moment.AWAITS_MESSAGE, 0))
        events.append((begin, begin + 800, call, 7, 0, 0, Moment.INSTRUCTION, 0))
        events.append((begin - 10, begin + 800, call, 7, 0, 0, Moment.CALL, 0))
    return Tape(np.array(events, EVENT), dropped)


def part_of(rank, run="r", clock=CLOCK, dropped=0, number=0):
    origin = Origin(run, "c", rank, 2, 100 + rank, (100, 101), rank, number)
    return lines_of(Part(origin, {7: plan(rank)}, {}, clock, 500, 900, 5000), tape(rank, dropped), NOTHING)


def write_part(folder, rank, **options):
    header, lines = part_of(rank, **options)
    path = part_path(folder, header)
    write_trace(path, [header], lines)
    return path
