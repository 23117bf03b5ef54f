"""Measure which algorithm is the best on this machine, by collective and bytes.

All ranks measure together and decide alike, by the time of the slowest rank. An algorithm that is far behind at two
sizes in a row is not measured at the next ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from unisono import collectives
from unisono.algorithms import catalogue
from unisono.bootstrap.membership import Table
from unisono.collectives import Collective, barrier
from unisono.comm.communicator import Communicator

SIZES_BYTES = (8, 256, 2048, 16 << 10, 128 << 10, 1 << 20, 8 << 20, 32 << 20)
ROUNDS = 3
FAR_BEHIND = 3.0  # times slower than the best at this size: not measured at the next
NOT_CLEARLY = 1.05  # less than this is noise: what was best for less bytes stays


def tune(comm: Communicator, budget_s: float, progress: Callable[[str], None] = lambda text: None) -> Table:
    """Measure every collective; return the table, the same on every rank."""
    measured = [collective for collective in collectives.COLLECTIVES if collective is not barrier]
    table: Table = {}
    for collective in measured:
        progress(collective.name)
        rules = _rules(comm, collective, budget_s / len(measured))
        table[collective.name] = {str(comm.size): rules}
    return table


def _rules(comm: Communicator, collective: Collective, budget_s: float) -> list[list[Any]]:
    candidates = [algorithm.name for algorithm in catalogue.serving(collective, comm.size)]
    behind: dict[str, int] = dict.fromkeys(candidates, 0)
    rules: list[list[Any]] = []
    for nbytes in SIZES_BYTES:
        running = [name for name in candidates if behind[name] < 2]
        each_s = budget_s / len(SIZES_BYTES) / len(running) / (ROUNDS + 1)
        times = _times(comm, collective, nbytes, running, each_s)
        best = min(running, key=lambda name: times[name])
        for name in running:
            # Being behind twice ends the race; being near the best again forgives.
            behind[name] = behind[name] + 1 if times[name] > FAR_BEHIND * times[best] else 0
        last = rules[-1][1] if rules else None
        if last is None or last not in times or times[last] > NOT_CLEARLY * times[best]:
            # The rule begins half-way, on a logarithmic scale, from the size before.
            start = 0 if not rules else int((nbytes * _before(nbytes)) ** 0.5)
            rules.append([start, best])
    return rules


def _before(nbytes: int) -> int:
    return SIZES_BYTES[max(0, SIZES_BYTES.index(nbytes) - 1)]


def _times(
    comm: Communicator, collective: Collective, nbytes: int, names: list[str], each_s: float
) -> dict[str, float]:
    """Return seconds per call of each algorithm: the best of some rounds, in each of which all take their turn."""
    found = np.full(len(names), np.inf)
    with_calls = dict(zip(names, (list(_call(comm, collective, nbytes, name)) for name in names), strict=True))
    calls = np.ones(len(names), np.int64)
    for turn in range(ROUNDS + 1):
        for place, name in enumerate(names):
            call = with_calls[name][0]
            comm.barrier()
            began = time.perf_counter()
            for _ in range(calls[place]):
                call()
            spent = np.array([(time.perf_counter() - began) / calls[place]])
            comm.all_reduce(spent, op="max")
            if turn:  # the first one warms up, and tells how many calls fit
                found[place] = min(found[place], spent[0])
            else:
                calls[place] = max(1, min(2000, int(each_s / max(spent[0], 1e-7))))
    return dict(zip(names, found.tolist(), strict=True))


def _call(comm: Communicator, collective: Collective, nbytes: int, name: str) -> Iterator[Callable[[], Any]]:
    """Yield a call of the collective on arrays of its own."""
    size = comm.size
    count = max(1, nbytes // 4 // size) * size if collective.blocked else max(1, nbytes // 4)
    whole, part = np.zeros(count, np.float32), np.zeros(max(1, count // size), np.float32)
    method = getattr(comm, collective.name)
    if collective.single_array:
        yield lambda: method(whole, algorithm=name)
    elif collective.name == "all_to_all":
        other = np.zeros_like(whole)
        yield lambda: method(other, whole, algorithm=name)
    else:
        before = collective.held_before(comm.rank, size, size)
        after = collective.held_after(comm.rank, size, size)
        arrays = {size: whole, 1: part, 0: None}
        if size == 1:
            arrays, part = {1: whole}, np.zeros_like(whole)
            yield lambda: method(part, whole, algorithm=name)
            return
        out, source = arrays[len(after)], arrays[len(before)]
        yield lambda: method(out, source, algorithm=name)
