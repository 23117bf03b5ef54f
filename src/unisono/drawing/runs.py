"""``unisono draw run/``: draws the page of a recorded run.

The page shows one communicator at a time: its calls on a timeline, the waits and their causes, and a replay of each
call with its real timing. Long data is in packed columns (``run_data.py``); a schedule that several calls share is
stored once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from unisono.algorithms import BUILT_IN
from unisono.collectives import Words
from unisono.drawing import messages
from unisono.drawing.page import Settings, fill_template, script
from unisono.drawing.run_data import Replays, group_data
from unisono.errors import UsageError
from unisono.message import Message, listed
from unisono.tracing.reading import read_run
from unisono.tracing.run import Call, Run, TracedCommunicator
from unisono.tracing.sentences import page_data

MOST_EVENTS = 160_000  # ops and waits on a page: about 4 MB


@dataclass(frozen=True)
class RunPage:
    """The page of a run, and the sentences that the terminal prints about it."""

    title: str
    html: str
    verdict: list[Words]
    notes: list[Words]  # the parts that are not on the page


def is_trace(name: str | PathLike[str]) -> bool:
    """Return whether a name stands for a trace: a folder or a JSON file that is not the name of an algorithm."""
    path = Path(name)
    if path.suffix == ".json":
        return True
    known = {part for algorithm in BUILT_IN for part in (algorithm.name, str(algorithm), str(algorithm.collective))}
    try:
        return str(name) not in known and path.is_dir()
    except OSError:  # such as a name that is too long
        return False


def write_run_page(
    run: Run | str | PathLike[str],
    settings: Settings | None = None,
    calls: tuple[int, int | None] | None = None,
    most_events: int = MOST_EVENTS,
) -> RunPage:
    """Return the page of a recorded run, given as ``read_run`` returns it, or as the path of its trace.

    ``calls``: the numbers of the first and the last call to draw, the last None for all that follow. Where that is
    more than ``most_events``, the first of them are drawn.
    """
    found = run if isinstance(run, Run) else read_run(run, missing_ok=True)
    parts = _parts(found, calls, most_events)
    replays = Replays(found)
    groups = [group_data(part.whole, part.drawn, part.note, replays, len(parts) > 1) for part in parts]
    name = Path(found.source).resolve().parent.name if found.source.endswith("run.json") else Path(found.source).name
    size = max(part.whole.size for part in parts)
    title = f"{name} · {size}"
    chosen = settings or Settings()
    data = {
        "run": {
            "name": name,
            "groups": groups,
            "scenes": replays.scenes,
            **page_data(),
        },
        "settings": chosen.as_dict(),
        "home": chosen.home,
    }
    html = fill_template("page.html", title, data, script("run/run"))
    verdict = [Words(**groups[0]["verdict"][key]) for key in ("title", "tale", "why") if groups[0]["verdict"][key]]
    notes = [Words(**note) for group in groups for note in group["notes"]]
    return RunPage(title, html, verdict, notes)


# ---- which calls -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """The part of a communicator that is drawn, and a note on the rest."""

    whole: TracedCommunicator
    drawn: TracedCommunicator
    note: Message | None


def _parts(run: Run, calls: tuple[int, int | None] | None, most_events: int) -> list[_Part]:
    """Return the part of each communicator that fits on a page; those with the most time in calls come first."""
    asked = [(group, _asked_for(group, calls)) for group in run.communicators]
    large = [call for _, chosen in asked for call in chosen if _events(call) > most_events]
    if large:
        raise UsageError(_too_large(run, large, most_events))
    wanted = [(group, chosen) for group, chosen in asked if chosen or (calls is None and group.transfers)]
    if not wanted:
        raise UsageError(_nothing(run, calls))
    shares = _shares([sum(map(_events, chosen)) for _, chosen in wanted], most_events)
    parts = [_cut(*one, share, most_events) for one, share in zip(wanted, shares, strict=True)]
    return sorted(parts, key=lambda part: -_time_in_calls(part.whole))


def _asked_for(group: TracedCommunicator, calls: tuple[int, int | None] | None) -> list[Call]:
    if calls is None:
        return group.calls
    first, last = calls
    return [call for call in group.calls if call.number >= first and (last is None or call.number <= last)]


def _cut(group: TracedCommunicator, chosen: list[Call], share: int, most_events: int) -> _Part:
    """Return as many of the calls as fit, at least one."""
    drawn: list[Call] = []
    for call in chosen:
        share -= _events(call)
        if drawn and share < 0:
            break
        drawn.append(call)
    if len(drawn) == len(group.calls):
        return _without_most_transfers(group, most_events)
    begin, end = min(call.begin_ns for call in drawn), max(call.end_ns for call in drawn)
    transfers = [one for one in group.transfers if one.end_ns >= begin and one.begin_ns <= end][:most_events]
    part = dataclasses.replace(group, calls=drawn, transfers=transfers)
    numbers = {"first": drawn[0].number, "last": drawn[-1].number, "count": len(group.calls)}
    if len(drawn) < len(chosen):
        return _Part(group, part, messages.SOME_CALLS_FIT(**numbers, following=numbers["last"] + 1))
    return _Part(group, part, messages.SOME_CALLS(**numbers))


def _without_most_transfers(group: TracedCommunicator, most_events: int) -> _Part:
    """Return the communicator with all calls, and as many sends and receives as fit."""
    every = len(group.transfers)
    if every <= most_events:
        return _Part(group, group, None)
    note = messages.SOME_TRANSFERS(shown=most_events, count=every)
    return _Part(group, dataclasses.replace(group, transfers=group.transfers[:most_events]), note)


def _shares(needed: Sequence[int], most: int) -> list[int]:
    """Divide the capacity of a page: small needs are met in full, and the others share the rest equally."""
    shares = [0] * len(needed)
    left = most
    for done, at in enumerate(sorted(range(len(needed)), key=lambda at: needed[at])):
        shares[at] = min(needed[at], left // (len(needed) - done))
        left -= shares[at]
    return shares


def _events(call: Call) -> int:
    return sum(len(rank.ops) + len(rank.waits) for rank in call.ranks.values())


def _time_in_calls(group: TracedCommunicator) -> int:
    return sum(rank.end_ns - rank.begin_ns for call in group.calls for rank in call.ranks.values())


def _too_large(run: Run, large: list[Call], most_events: int) -> Message:
    numbers = listed((str(call.number) for call in large), longest=5)
    return messages.CALL_TOO_LARGE(
        run=run.source, numbers=numbers, label=large[0].label, events=_events(large[0]), most=most_events
    )


def _nothing(run: Run, calls: tuple[int, int | None] | None) -> Message:
    numbers = [call.number for group in run.communicators for call in group.calls]
    if calls is None or not numbers:
        return messages.NO_CALLS(run=run.source)
    wanted = f"{calls[0]}-{'' if calls[1] is None else calls[1]}"
    return messages.NO_SUCH_CALLS(run=run.source, calls=wanted, first=min(numbers), last=max(numbers))
