"""What the page of a run knows of one communicator, as plain data."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from unisono.collectives import Words
from unisono.drawing.packing import pack
from unisono.drawing.scene import MOST_RANKS_ON_STAGE, Scene, scene_of
from unisono.errors import UnisonoError
from unisono.schedule import Schedule
from unisono.schedule.ops import SEND
from unisono.tracing.narration import absent, overview, reason_words, slow_rank_cost, slow_rank_name
from unisono.tracing.replay import Key, schedule_of, times_of
from unisono.tracing.run import Call, Run, TracedCommunicator
from unisono.tracing.stragglers import FEWEST_CALLS, losses, slow_rank
from unisono.tracing.timeline import HOW, REASONS, WHAT, Timeline, timeline_of
from unisono.tracing.waiting import Blame, blames, waited_ns

# Why a call cannot be replayed, as the page knows it; 0: it can.
NO_SCHEDULE, RANKS_MISSING, NOT_WHOLE, TOO_LARGE, WRONG_SCHEDULE = 1, 2, 3, 4, 5
UNKNOWN = -1  # when something happened that the trace does not have


class Replays:
    """The schedules of a run as scenes, each one once, and the times of calls in their order."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.scenes: list[Scene] = []
        self.known: dict[str, tuple[int, Schedule, list[Key]] | int] = {}  # by digest; a number: why there is none

    def of(self, call: Call, size: int) -> tuple[int, Schedule, list[Key]] | int:
        """Return the number of the scene of a call, with the schedule and its messages; or why there is none."""
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
        except UnisonoError:  # the text in the trace makes no sense
            return WRONG_SCHEDULE
        if scene["failure"]:  # no such program is ever executed
            return WRONG_SCHEDULE
        if not scene["on_stage"]:
            return TOO_LARGE
        scene["code"] = None  # it is not shown here
        self.scenes.append(scene)
        return len(self.scenes) - 1, schedule, _messages(schedule)


def group_data(
    whole: TracedCommunicator, drawn: TracedCommunicator, note: Words | None, replays: Replays, named: bool
) -> dict[str, Any]:
    """Return what the page shows of a communicator: the calls ``drawn``, and what was found in all of them."""
    line = timeline_of(drawn)
    causes = blames(whole)
    notes = [*absent(whole), *([note] if note else [])]
    return {
        "size": whole.size, "names": line.names, "missing": line.missing, "call_count": len(drawn.calls),
        "verdict": {key: words and words._asdict() for key, words in _verdict(whole).items()},
        "slow": (slow := slow_rank(whole)) and slow.rank,
        "overview": _sentence(overview(whole, named))._asdict(),
        "notes": [_sentence(one)._asdict() for one in notes],
        "waited": [[*pair, ns] for pair, ns in waited_ns(whole).items()],
        "blamed": _blamed(causes),
        "abouts": _abouts(line)[0], "details": line.details, "reasons": REASONS, "whats": WHAT,
        "packed": pack({**_columns(line, causes), **_replay_columns(drawn, replays)}),
    }  # fmt: skip


# ---- words -------------------------------------------------------------------------------------------------------


def _verdict(group: TracedCommunicator) -> dict[str, Words | None]:
    """Return what is said first: which rank was slow, or that none was."""
    slow = slow_rank(group)
    if slow is not None:
        said = (slow_rank_name(slow, group), slow_rank_cost(slow), reason_words(slow))
        title, tale, why = (_sentence(words) for words in said)
        return {"title": Words(title.en.rstrip("."), title.zh.rstrip("。")), "tale": tale, "why": why}
    if group.size == 1:
        title, told = Words("One rank, and nobody to wait for", "只有一个进程，无人可等"), None
    elif len(group.calls) < FEWEST_CALLS:
        title, told = Words("Too few calls to call a rank slow", "调用太少，无法断定哪个进程较慢"), None
    else:
        title = Words("No rank was slow", "没有哪个进程较慢")
        told = Words("No rank held the others up again and again.", "没有哪个进程一再拖慢其他进程。")
    return {"title": title, "tale": told, "why": None}


def _sentence(words: Words) -> Words:
    return Words(f"{words.en[:1].upper()}{words.en[1:]}.", f"{words.zh}。")


# ---- columns -----------------------------------------------------------------------------------------------------


def _blamed(causes: list[Blame]) -> list[list[int]]:
    """Return waiter, culprit, and how long because that one came late, and because it was slow."""
    total: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for one in causes:
        total[one.waiter, one.culprit][HOW.index(one.how)] += one.ns
    return [[*pair, *ns] for pair, ns in total.items()]


def _abouts(line: Timeline) -> tuple[list[dict[str, Any]], list[int]]:
    """Return everything about calls but when they were, each combination once; and the number of each call's own."""
    numbers: dict[tuple[Any, ...], int] = {}
    names = ("label", "collective", "algorithm", "count", "dtype", "bytes", "op", "root", "codec", "passes")
    of_calls = [numbers.setdefault(tuple(call[name] for name in names), len(numbers)) for call in line.calls]
    return [dict(zip(names, values, strict=True)) for values in numbers], of_calls


def _columns(line: Timeline, causes: list[Blame]) -> dict[str, Any]:
    worst: dict[int, tuple[int, int]] = {}  # of each call, the rank that most was lost by, and how much
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
            # How long a thing takes is a smaller number than when it ends.
            columns[f"{name}_{column}"] = values - table["begin"] if column == "end" else values
    return columns


def _replay_columns(group: TracedCommunicator, replays: Replays) -> dict[str, Any]:
    """Return for each call its scene, or why there is none, and when its messages and steps were over.

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
    taken = np.array(got, np.int64) - np.array(sent, np.int64)  # a smaller number than when it was received
    return {
        "call_scene": scenes, "call_why": why, "time_sent": sent, "time_taken": taken, "time_finished": finished,
    }  # fmt: skip


def _messages(schedule: Schedule) -> list[Key]:
    """Return the messages of a schedule, by sender, receiver, and the how manyeth it is between the two."""
    counts: dict[tuple[int, int], int] = defaultdict(int)
    for rank in range(schedule.size):
        for step in schedule.program(rank):
            for op in step:
                if op.kind == SEND:
                    counts[rank, int(op.other)] += 1  # type: ignore[arg-type]
    return [(*pair, number) for pair in sorted(counts) for number in range(counts[pair])]


def _ns(seconds: float | None) -> int:
    return UNKNOWN if seconds is None else round(seconds * 1e9)
