"""Measures the times of calls on the ranks of a communicator, from which the rates of a machine follow.

All ranks measure together. A time is that of the slowest rank, in the fastest of several blocks of calls, in which
all algorithms take turns.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from unisono import collectives
from unisono.collectives import Collective
from unisono.comm.candidates import candidates_for
from unisono.comm.communicator import Communicator
from unisono.comm.tuning import call_times
from unisono.compiler.geometry import TRACKS_BETWEEN_HOSTS
from unisono.costs.calibration import Sample
from unisono.costs.stored_terms import stored_terms

# The algorithms by which a machine is calibrated: all kinds of messages, copies and sums, in few calls.
CALIBRATING: Mapping[str, tuple[str, ...]] = {
    "all_reduce": ("naive", "direct", "ring", "recursive_doubling", "tree", "rabenseifner"),
    "all_gather": ("naive", "ring", "bruck"),
    "reduce_scatter": ("naive", "ring", "recursive_halving"),
    "broadcast": ("naive", "chain", "tree"),
    "reduce": ("naive", "chain", "tree"),
    "all_to_all": ("naive", "pairwise", "bruck"),
    "scatter": ("naive",),
    "gather": ("naive",),
}
CALIBRATING_BYTES = (8, 256, 2048, 16 << 10, 128 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20)
MOST_BUDGETS = 2.0  # no longer vectors are measured when this many times the budget is spent


class MeasuredCall(NamedTuple):
    """The time of a call: its collective, its algorithm as cost terms name it, its bytes and its seconds."""

    collective: str
    algorithm: str
    nbytes: int
    time_s: float


def measure_calls(
    comm: Communicator, budget_s: float, algorithms: Mapping[str, Sequence[str]] | None = None,
    sizes: Sequence[int] = CALIBRATING_BYTES,
) -> list[MeasuredCall]:  # fmt: skip
    """Measure calls for about ``budget_s`` seconds; all ranks call this, and all get the same result.

    ``algorithms`` names them by collective (default: those that calibrate a machine). The longest vectors are left
    out where the calls take much longer than the budget.
    """
    chosen = [
        (collective, _variants(collective, comm, None if algorithms is None else algorithms.get(collective.name, ())))
        for collective in collectives.COLLECTIVES
        if collective.carries_data and collective.name in (CALIBRATING if algorithms is None else algorithms)
    ]
    each_s = budget_s / max(1, len(sizes) * sum(len(variants) for _, variants in chosen))
    found = []
    began_s = time.perf_counter()
    for nbytes in sizes:
        for collective, variants in chosen:
            times_s = call_times(comm, collective, nbytes, [argument for _, argument in variants], each_s)
            found += [
                MeasuredCall(collective.name, key, nbytes, time_s)
                for (key, _), time_s in zip(variants, times_s, strict=True)
            ]
        spent_s = np.array([time.perf_counter() - began_s])
        comm.all_reduce(spent_s, op="max")  # all ranks stop at the same size
        if spent_s[0] > MOST_BUDGETS * budget_s:
            break
    return found


def bind(comm: Communicator) -> None:
    """Bind this rank to a core, as `unisono run --bind` does.

    Ranks that are not bound run on other cores in every job, and the times of all calls change with them, by a tenth
    or more.
    """
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[comm.rank % len(cores)]})


def merged(jobs: Iterable[Iterable[MeasuredCall]]) -> list[MeasuredCall]:
    """Return the calls of several jobs, each with its median time."""
    times_s: dict[tuple[str, str, int], list[float]] = {}
    for calls in jobs:
        for call in calls:
            times_s.setdefault(call[:3], []).append(call.time_s)
    return [MeasuredCall(*call, median(found)) for call, found in times_s.items()]


def _variants(collective: Collective, comm: Communicator, names: Sequence[str] | None) -> list[tuple[str, object]]:
    """Return the keys of algorithms and the arguments of calls that use them."""
    wanted = CALIBRATING[collective.name] if names is None else names
    root = 0 if collective.rooted else None
    return [
        (each.key, each.schedule(comm.size, root) if each.own else each.name)
        for each in candidates_for(collective, comm.size, comm.hosts)
        if each.key in wanted and each.is_practical(comm.size)
    ]


def samples_of(calls: Sequence[MeasuredCall], counts: tuple[int, ...], cores: int) -> list[Sample]:
    """Return measured calls with the cost terms of their programs; ``counts`` are the ranks of each host."""
    found = []
    for call in calls:
        terms = stored_terms(call.collective, counts)[call.algorithm]
        ranks_per_core = max(1.0, max(counts) / cores)
        tracks = 1 if len(counts) == 1 else TRACKS_BETWEEN_HOSTS
        collective = collectives.find(call.collective)
        found.append(Sample(collective, terms, call.nbytes, ranks_per_core, call.time_s, tracks))
    return found
