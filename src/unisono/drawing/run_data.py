"""Converts one traced communicator into the plain data that the page of a run needs."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from unisono.drawing.packing import pack
from unisono.drawing.scene import MOST_RANKS_ON_STAGE, Scene, scene_of
from unisono.errors import UnisonoError
from unisono.message import Message
from unisono.schedule import Schedule
from unisono.schedule.ops import SEND
from unisono.tracing import sentences
from unisono.tracing.narration import (
    absent,
    hosts_of,
    overview,
    slow_rank_cost,
    slow_rank_name,
    slow_rank_reason,
)
from unisono.tracing.replay import Key, schedule_of, times_of
from unisono.tracing.run import Call, Run, TracedCommunicator
from unisono.tracing.sentences import as_sentence, as_title
from unisono.tracing.stragglers import FEWEST_CALLS, losses, slow_rank
from unisono.tracing.timeline import HOW, REASONS, WHAT, Timeline, timeline_of
from unisono.tracing.waiting import Blame, blames, waited_ns

# Reasons why a call cannot be replayed, as numbers that the page knows; 0: it can.
NO_SCHEDULE, RANKS_MISSING, NOT_WHOLE, TOO_LARGE, WRONG_SCHEDULE = 1, 2, 3, 4, 5
UNKNOWN = -1  # the time of an event that is not in the trace


class Replays:
    """The schedules of a run as scenes, each of them once."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.scenes: list[Scene] = []
        self.known: dict[
            str, tuple[int, Schedule, list[Key]] | int
        ] = {}  # by digest; an int is the reason why there is none

    def of(self, call: Call, size: int) -> tuple[int, Schedule, list[Key]] | int:
        """Return the number, schedule and messages of the scene of a call, or the reason why there is none."""
        if call.schedule not in self.known:
            self.known[call.schedule] = self._made(call)
        found = self.known[call.schedule]
        if isinstance(found, tuple) and (found[1].size, found[1].collective) != (size, call.collective):
            return WRONG_SCHEDULE
        return found

    def _made(self, call: Call) -> tuple[int, Schedule, list[Key]] | int:
        try:
            schedule = schedule_of(self.run, call)
            if schedule is None:
                return NO_SCHEDULE
            if schedule.size > MOST_RANKS_ON_STAGE:
                return TOO_LARGE
            scene = scene_of(schedule)
        except UnisonoError:  # the text in the trace is invalid
            return WRONG_SCHEDULE
        if scene["failure"]:  # a program that fails its proof is never executed
            return WRONG_SCHEDULE
        if not scene["on_stage"]:
            return TOO_LARGE
        scene["code"] = None  # the page of a run does not show it
        self.scenes.append(scene)
        return len(self.scenes) - 1, schedule, _messages(schedule)


def group_data(
    whole: TracedCommunicator, drawn: TracedCommunicator, note: Message | None, replays: Replays, named: bool
) -> dict[str, Any]:
    """Return the data of a communicator: the calls ``drawn``, and the findings in all its calls."""
    line = timeline_of(drawn)
    causes = blames(whole)
    notes = [*absent(whole), *([note] if note else [])]
    return {
        "size": whole.size, "names": line.names, "missing": line.missing, "call_count": len(drawn.calls),
        "verdict": _verdict(whole),
        "slow": (slow := slow_rank(whole)) and slow.rank,
        "overview": as_sentence(overview(whole, named)),
        "hosts": [as_sentence(message) for message in hosts_of(whole)],
        "notes": [as_sentence(message) for message in notes],
        "waited": [[*pair, ns] for pair, ns in waited_ns(whole).items()],
        "blamed": _blamed(causes),
        "abouts": _abouts(line)[0], "details": line.details, "reasons": REASONS, "whats": WHAT,
        "packed": pack({**_columns(line, causes), **_replay_columns(drawn, replays)}),
    }  # fmt: skip


# ---- words -------------------------------------------------------------------------------------------------------


def _verdict(group: TracedCommunicator) -> dict[str, dict[str, str] | None]:
    """Return the first sentences of the page: which rank was slow, or that none was."""
    slow = slow_rank(group)
    if slow is not None:
        return {
            "title": as_title(slow_rank_name(slow, group)),
            "tale": as_sentence(slow_rank_cost(slow)),
            "why": as_sentence(slow_rank_reason(slow)),
        }
    if group.size == 1:
        return {"title": as_title(sentences.ONE_RANK()), "tale": None, "why": None}
    if len(group.calls) < FEWEST_CALLS:
        return {"title": as_title(sentences.TOO_FEW_CALLS()), "tale": None, "why": None}
    return {"title": as_title(sentences.NONE_SLOW()), "tale": as_sentence(sentences.NO_SLOW_RANK()), "why": None}


# ---- columns -----------------------------------------------------------------------------------------------------


def _blamed(causes: list[Blame]) -> list[list[int]]:
    """Return waiter, culprit, and the time waited because the culprit was late, and because it was slow."""
    total: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for one in causes:
        total[one.waiter, one.culprit][HOW.index(one.how)] += one.ns
    return [[*pair, *ns] for pair, ns in total.items()]


def _abouts(line: Timeline) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the descriptions of calls without their times, each once, and the number of each call's description."""
    numbers: dict[tuple[Any, ...], int] = {}
    names = ("label", "collective", "algorithm", "count", "dtype", "bytes", "op", "root", "codec", "passes")
    of_calls = [numbers.setdefault(tuple(call[name] for name in names), len(numbers)) for call in line.calls]
    return [dict(zip(names, values, strict=True)) for values in numbers], of_calls


def _columns(line: Timeline, causes: list[Blame]) -> dict[str, Any]:
    worst: dict[int, tuple[int, int]] = {}  # for each call, the rank that caused most of the waiting, and how much
    for (call, culprit), lost in losses(causes).items():
        worst[call] = max(worst.get(call, (0, -1)), (lost.total(), culprit))
    numbers = [call["number"] for call in line.calls]
    columns: dict[str, Any] = {
        "call_number": numbers, "call_about": _abouts(line)[1],
        "call_begin": [call["begin"] for call in line.calls], "call_end": [call["end"] for call in line.calls],
        "call_lost": [worst.get(number, (0, -1))[0] for number in numbers],
        "call_culprit": [worst.get(number, (0, -1))[1] for number in numbers],
    }  # fmt: skip
    for name, table in (
        ("entered", line.entered), ("op", line.ops), ("wait", line.waits), ("message", line.messages),
        ("path", line.path), ("transfer", line.transfers),
    ):  # fmt: skip
        for column, values in table.items():
            # A duration is a smaller number than an end.
            columns[f"{name}_{column}"] = values - table["begin"] if column == "end" else values
    return columns


def _replay_columns(group: TracedCommunicator, replays: Replays) -> dict[str, Any]:
    """Return for each call its scene, or the reason why there is none, and the ends of its messages and steps.

    ``time_sent`` and ``time_got`` follow the order of the messages by sender, receiver and number; ``time_finished``
    that of the steps, rank by rank.
    """
    scenes, why = [], []
    sent: list[int] = []
    got: list[int] = []
    finished: list[int] = []
    for call in group.calls:
        found = replays.of(call, group.size)
        if len(call.ranks) < group.size:
            found = RANKS_MISSING
        elif not all(rank.whole for rank in call.ranks.values()):
            found = NOT_WHOLE
        scenes.append(UNKNOWN if isinstance(found, int) else found[0])
        why.append(found if isinstance(found, int) else 0)
        if isinstance(found, int):
            continue
        _, schedule, keys = found
        times = times_of(call, schedule)
        sent += [_ns(times.sent.get(key)) for key in keys]
        got += [_ns(times.got.get(key)) for key in keys]
        finished += [_ns(moment) for steps in times.finished for moment in steps]
    taken = np.array(got, np.int64) - np.array(sent, np.int64)  # smaller numbers than the times of receipt
    return {
        "call_scene": scenes, "call_why": why, "time_sent": sent, "time_taken": taken, "time_finished": finished,
    }  # fmt: skip


def _messages(schedule: Schedule) -> list[Key]:
    """Return the messages of a schedule by sender, receiver, and index among the messages between the two."""
    counts: dict[tuple[int, int], int] = defaultdict(int)
    for rank in range(schedule.size):
        for step in schedule.program(rank):
            for op in step:
                if op.kind == SEND:
                    counts[rank, int(op.other)] += 1  # type: ignore[arg-type]
    return [(*pair, number) for pair in sorted(counts) for number in range(counts[pair])]


def _ns(seconds: float | None) -> int:
    return UNKNOWN if seconds is None else round(seconds * 1e9)
