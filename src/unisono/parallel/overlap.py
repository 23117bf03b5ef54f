"""Measures how much of the communication is hidden behind computation.

::

    computation     ████████████████████            ▐ end of the step
    communication        ▒▒▒▒▒▒  ▒▒▒▒▒▒  ▒▒▒▒▒▒▒▒▒▒▒▐
                                        └ exposed ──┘

*Waited*: the time in a step that this rank spends blocked in collectives; every wait is timed and logged
(``Entry.waited_s``). It includes the time spent waiting for ranks whose computation takes longer.

*Exposed*: the time that the last rank to enter a collective waits for it, summed over the collectives of a step. All
other ranks have already entered, so this rank waits for communication only.

*Alone*: the time that the same collectives take one after the other without any computation, when all ranks start
each of them together. Without overlap, the step would take this much longer.
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
from unisono.parallel.messages import NO_GROUP_FOR_ENTRY, ON_AXIS

WARM_UP = 2  # steps that are not measured


@dataclass(frozen=True)
class Overlap:
    """Median times of a step on this rank, in seconds.

    ``step_s``: the whole step.
    ``waited_s``: the time blocked in collectives, including the time waiting for slower ranks.
    ``exposed_s``: the time that the last rank to enter each collective waits for it; the same on all ranks.
    ``alone_s``: the time of the same collectives without computation.
    """

    step_s: float
    waited_s: float
    exposed_s: float
    alone_s: float

    @property
    def exposed_part(self) -> float:
        """The exposed time as a fraction of the time that all communication takes alone."""
        return self.exposed_s / self.alone_s if self.alone_s else 0.0


def measure_overlap(step: Callable[[], Any], *groups: Group, steps: int = 10, device: Any = "cpu") -> Overlap:
    """Run a step several times, then its collectives alone; return the times. All ranks of all groups call this.

    ``step``: a function that trains one step.
    ``groups``: the groups that the step communicates in, one for each axis.
    ``steps``: the number of steps to measure.
    ``device``: that of the tensors. On a CUDA device, *waited* is the time that the stream of the step waits.
    """
    taken, logs = [], []
    for _ in range(WARM_UP + steps):
        for group in groups:
            _synchronise(group, device)
        with record() as log:
            began = time.perf_counter()
            step()
            _finish(device)
            taken.append(time.perf_counter() - began)
        logs.append(log)
    counted = logs[WARM_UP:]
    return Overlap(
        statistics.median(taken[WARM_UP:]), statistics.median(log.waited_s for log in counted),
        sum(_exposed(counted, group) for group in groups), replay(logs[-1], *groups, device=device),
    )  # fmt: skip


def _exposed(logs: list[Log], group: Group) -> float:
    """Return the median over steps of the exposed time of a group's collectives."""
    mine = [[entry.waited_s for entry in log if entry.axis == group.axis] for log in logs]
    steps = zip(*group.all_gather_object(mine), strict=True)  # for each step, the waits of all ranks
    last: list[float] = [sum(min(waits) for waits in zip(*of_ranks, strict=True)) for of_ranks in steps]
    return statistics.median(last)


def replay(log: Log, *groups: Group, times: int = 5, device: Any = "cpu") -> float:
    """Repeat the collectives of a log one after the other, on new tensors; return the seconds they take.

    ``log``: a log of ``record()``.
    ``groups``: the groups of its collectives, one for each axis.
    ``times``: the number of repetitions; the median of each collective on this rank counts.
    ``device``: that of the tensors.

    An all-to-all of unequal parts is repeated with equal parts.
    """
    by_axis = {group.axis: group for group in groups}
    total = 0.0
    for entry in log:
        group = by_axis.get(entry.axis)
        if group is None or group.size != entry.size:
            axis = ON_AXIS(axis=entry.axis) if entry.axis else ""
            raise UsageError(
                NO_GROUP_FOR_ENTRY(collective=entry.collective, name=entry.name, size=entry.size, axis=axis)
            )
        call = _call(entry, group, device)
        call()
        seconds = []
        for _ in range(times):
            _synchronise(group, device)
            began = time.perf_counter()
            call()
            _finish(device)
            seconds.append(time.perf_counter() - began)
        total += statistics.median(seconds)
    return total


def _synchronise(group: Group, device: Any) -> None:
    group.all_reduce(torch.zeros(1, device=device), name="(barrier)", phase="start")
    _finish(device)


def _finish(device: Any) -> None:
    """Wait until the work of this rank on a device is over."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)


def _call(entry: Entry, group: Group, device: Any) -> Callable[[], Any]:
    """Return a function that repeats the collective of an entry."""
    dtype = getattr(torch, entry.dtype)
    options: dict[str, Any] = {"name": entry.name, "phase": entry.phase}
    whole = torch.zeros(entry.bytes // dtype.itemsize, dtype=dtype, device=device)
    each = len(whole) // group.size
    if entry.collective == "all_to_all":
        whole = whole[: each * group.size]
        rows = [each] * group.size
        out = torch.empty_like(whole)
        return lambda: group.all_to_all(out, whole, out_rows=rows, in_rows=rows, **options)
    if entry.collective == "broadcast":
        return lambda: group.broadcast(whole, **options)
    options["codec"] = entry.codec or None
    if entry.collective == "all_reduce":
        return lambda: group.all_reduce(whole, **options)
    part = torch.zeros(each, dtype=dtype, device=device)
    if entry.collective == "all_gather":
        return lambda: group.all_gather(whole, part, **options)
    return lambda: group.reduce_scatter(part, whole, **options)
