"""Real times for the drawing of a schedule: when each of its messages was sent and received in a recorded call.

A call may go through the program several times, once for each segment (a pass). The drawing shows the program once: a
message then lasts from when its first segment is sent to when its last one was received.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from unisono.errors import UsageError
from unisono.schedule import Schedule
from unisono.schedule.ops import SEND
from unisono.schedule.text import parse_schedule
from unisono.tracing.matching import messages_of
from unisono.tracing.run import Call, Run

Key = tuple[int, int, int]  # from, to, and the how manyeth message from the one to the other


@dataclass(frozen=True)
class Times:
    """When things happened, in seconds since the first rank began the call."""

    sent: dict[Key, float]
    got: dict[Key, float]
    finished: list[list[float]]  # of each rank, when each of its steps was over
    begun: list[float]  # when each rank began the call
    ended: list[float]


def schedule_of(run: Run, call: Call) -> Schedule | None:
    """Return the schedule of a call, as it was executed; None where the trace does not have it."""
    text = run.schedules.get(call.schedule)
    return None if text is None else parse_schedule(text, f"{run.source}, schedule {call.schedule}")


def times_of(call: Call, schedule: Schedule) -> Times:
    """Return the times of a call for the drawing of its schedule."""
    if schedule.size != len(call.ranks):
        raise UsageError(
            f"call {call.number} ({call.label}): {len(call.ranks)} ranks have recorded it, and the schedule is for "
            f"{schedule.size}; expected as many"
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
    """Return when each step of a rank was over: when all was, that happens in it or before it."""
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
