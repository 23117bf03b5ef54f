"""Computes the times of a recorded call for the drawing of its schedule.

A call may execute the program several times, once for each segment (a pass). The drawing shows the program once: a
message lasts from the start of the send of its first segment to the end of the receive of its last one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from unisono.errors import UsageError
from unisono.schedule import Schedule
from unisono.schedule.ops import SEND
from unisono.schedule.text import parse_schedule
from unisono.tracing import messages
from unisono.tracing.matching import messages_of
from unisono.tracing.run import Call, Run

Key = tuple[int, int, int]  # source, destination, and the index of the message among those between the two


@dataclass(frozen=True)
class Times:
    """Times in seconds since the first rank entered the call."""

    sent: dict[Key, float]
    got: dict[Key, float]
    finished: list[list[float]]  # for each rank, the end of each of its steps
    begun: list[float]  # when each rank entered the call
    ended: list[float]


def schedule_of(run: Run, call: Call) -> Schedule | None:
    """Return the schedule of a call as it was executed, or None if the trace does not contain it."""
    text = run.schedules.get(call.schedule)
    return None if text is None else parse_schedule(text, f"{run.source}, schedule {call.schedule}")


def times_of(call: Call, schedule: Schedule) -> Times:
    """Return the times of a call for the drawing of its schedule."""
    if schedule.size != len(call.ranks):
        raise UsageError(
            messages.OTHER_SIZE(number=call.number, label=call.label, ranks=len(call.ranks), size=schedule.size)
        )
    zero = call.begin_ns
    sent: dict[Key, float] = {}
    got: dict[Key, float] = {}
    for message in messages_of(call):
        key = (message.src, message.dst, message.number)
        begin, end = (message.sent.begin_ns - zero) / 1e9, (message.received.end_ns - zero) / 1e9
        sent[key] = min(begin, sent.get(key, begin))
        got[key] = max(end, got.get(key, end))
    ranks = [call.ranks[rank] for rank in range(schedule.size)]
    return Times(
        sent=sent,
        got=got,
        finished=[_finished(call, schedule, rank, sent, got) for rank in range(schedule.size)],
        begun=[(rank.begin_ns - zero) / 1e9 for rank in ranks],
        ended=[(rank.end_ns - zero) / 1e9 for rank in ranks],
    )


def _finished(
    call: Call, schedule: Schedule, rank: int, sent: dict[Key, float], got: dict[Key, float]
) -> list[float]:
    """Return the end of each step of a rank: the latest end of everything in it or before it."""
    local: dict[int, float] = defaultdict(float)
    for done in call.ranks[rank].ops:
        if not done.sources and not done.to:
            local[done.step] = max(local[done.step], (done.end_ns - call.begin_ns) / 1e9)
    counts: dict[tuple[int, int], int] = defaultdict(int)
    now = (call.ranks[rank].begin_ns - call.begin_ns) / 1e9
    finished = []
    for number, step in enumerate(schedule.program(rank)):
        for op in step:
            if op.is_local:
                now = max(now, local[number])
                continue
            peer = int(op.other)  # type: ignore[arg-type]
            pair = (rank, peer) if op.kind == SEND else (peer, rank)
            key = (*pair, counts[pair])
            counts[pair] += 1
            now = max(now, (sent if op.kind == SEND else got).get(key, now))
        finished.append(now)
    return finished
