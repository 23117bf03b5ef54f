"""How much of the communication is hidden behind computing.

::

    computing       ████████████████████            ▐ step is over
    communicating        ▒▒▒▒▒▒  ▒▒▒▒▒▒  ▒▒▒▒▒▒▒▒▒▒▒▐
                                        └ exposed ──┘

*Waited*: how long this rank stands still in a step because a collective is not over; the log has it, as every wait
is timed (``Entry.waited_s``). A rank also stands still for ranks that are late with their computing.

*Exposed*: how long the rank that comes last to a collective waits for it, summed over the collectives of a step. When
it comes all others are there already, so that what it waits for is communication and nothing else.

*Alone*: how long the same collectives take one after the other while nobody computes, all ranks starting each
of them together. That is what the step would be longer by, if nothing were hidden.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from unisono.errors import UsageError
from unisono.parallel.call_log import Entry, Log, record
from unisono.parallel.group import Group

WARM_UP = 2  # steps that do not count


@dataclass(frozen=True)
class Overlap:
    """Seconds of a step on this rank, in the median."""

    step_s: float
    waited_s: float
    exposed_s: float  # the same on all ranks
    alone_s: float

    @property
    def exposed_part(self) -> float:
        """Exposed time as a part of the time of all communication."""
        return self.exposed_s / self.alone_s if self.alone_s else 0.0


def measure_overlap(step: Callable[[], Any], *groups: Group, steps: int = 10) -> Overlap:
    """Run a step some times, then its collectives alone. All ranks of all groups call this.

    ``groups``: those that the step communicates in, one for each axis.
    """
    taken, logs = [], []
    for _ in range(WARM_UP + steps):
        for group in groups:
            _meet(group)
        with record() as log:
            began = time.perf_counter()
            step()
            taken.append(time.perf_counter() - began)
        logs.append(log)
    counted = logs[WARM_UP:]
    return Overlap(
        statistics.median(taken[WARM_UP:]), statistics.median(log.waited_s for log in counted),
        sum(_exposed(counted, group) for group in groups), replay(logs[-1], *groups),
    )  # fmt: skip


def _exposed(logs: list[Log], group: Group) -> float:
    """Return the median, over steps, of what the last rank to come has waited for the collectives of a group."""
    mine = [[entry.waited_s for entry in log if entry.axis == group.axis] for log in logs]
    steps = zip(*group.all_gather_object(mine), strict=True)  # of each step, what all ranks have waited
    last: list[float] = [sum(min(waits) for waits in zip(*of_ranks, strict=True)) for of_ranks in steps]
    return statistics.median(last)


def replay(log: Log, *groups: Group, times: int = 5) -> float:
    """Make the collectives of a log again, one after the other, on other tensors; return how many seconds they take.

    For each, the median of several times counts, on this rank. Exchanges of unequal parts are made with equal
    ones.
    """
    by_axis = {group.axis: group for group in groups}
    total = 0.0
    for entry in log:
        group = by_axis.get(entry.axis)
        if group is None or group.size != entry.size:
            raise UsageError(
                f"replay: {entry.collective} of {entry.name!r} was made by {entry.size} ranks"
                f"{f' on axis {entry.axis!r}' if entry.axis else ''}; expected their group among those given"
            )
        call = _call(entry, group)
        call()
        found = []
        for _ in range(times):
            _meet(group)
            began = time.perf_counter()
            call()
            found.append(time.perf_counter() - began)
        total += statistics.median(found)
    return total


def _meet(group: Group) -> None:
    group.all_reduce(torch.zeros(1), name="(meet)", phase="start")


def _call(entry: Entry, group: Group) -> Callable[[], Any]:
    """Return a function that makes the collective of an entry again."""
    dtype = getattr(torch, entry.dtype)
    words: dict[str, Any] = {"name": entry.name, "phase": entry.phase}
    whole = torch.zeros(entry.bytes // dtype.itemsize, dtype=dtype)
    each = len(whole) // group.size
    if entry.collective == "all_to_all":
        whole = whole[: each * group.size]
        rows = [each] * group.size
        out = torch.empty_like(whole)
        return lambda: group.all_to_all(out, whole, out_rows=rows, in_rows=rows, **words)
    if entry.collective == "broadcast":
        return lambda: group.broadcast(whole, **words)
    words["codec"] = entry.codec or None
    if entry.collective == "all_reduce":
        return lambda: group.all_reduce(whole, **words)
    part = torch.zeros(each, dtype=dtype)
    if entry.collective == "all_gather":
        return lambda: group.all_gather(whole, part, **words)
    return lambda: group.reduce_scatter(part, whole, **words)
