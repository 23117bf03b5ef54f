"""Measures the algorithms on this machine, and finds the fastest one by collective and bytes.

All ranks measure together and decide alike, by the time of the slowest rank. An algorithm that is far behind at two
sizes in a row is not measured at the next ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from unisono import collectives
from unisono.algorithms import catalogue
from unisono.bootstrap.membership import Table
from unisono.collectives import Collective, barrier
from unisono.comm.communicator import Communicator

SIZES_BYTES = (8, 256, 2048, 16 << 10, 128 << 10, 1 << 20, 8 << 20, 32 << 20)
REPEATS = 3
FAR_BEHIND = 3.0  # times slower than the best at this size: not measured at the next
NOT_CLEARLY = 1.05  # a smaller difference is noise: the best algorithm for fewer bytes is kept


def tune(comm: Communicator, budget_s: float, own: Mapping[str, Sequence[str]] | None = None) -> Table:
    """Measure every collective; return the table, the same on every rank.

    ``own`` names algorithms of a user, by collective: only these collectives are measured then, with the built-in
    algorithms and these.
    """
    measured = [
        collective for collective in collectives.COLLECTIVES
        if collective is not barrier and (not own or collective.name in own)
    ]  # fmt: skip
    table: Table = {}
    for collective in measured:
        candidates = [algorithm.name for algorithm in catalogue.algorithms_serving(collective, comm.size)]
        candidates += own[collective.name] if own else ()
        rules = _rules(comm, collective, candidates, budget_s / len(measured))
        table[collective.name] = {str(comm.size): rules}
    return table


def _rules(comm: Communicator, collective: Collective, candidates: list[str], budget_s: float) -> list[list[Any]]:
    behind: dict[str, int] = dict.fromkeys(candidates, 0)
    rules: list[list[Any]] = []
    for nbytes in SIZES_BYTES:
        running = [name for name in candidates if behind[name] < 2]
        each_s = budget_s / len(SIZES_BYTES) / len(running) / (REPEATS + 1)
        times = _times(comm, collective, nbytes, running, each_s)
        best = min(running, key=lambda name: times[name])
        for name in running:
            # An algorithm is dropped when it is far behind twice in a row.
            behind[name] = behind[name] + 1 if times[name] > FAR_BEHIND * times[best] else 0
        last = rules[-1][1] if rules else None
        if last is None or last not in times or times[last] > NOT_CLEARLY * times[best]:
            # The rule begins half-way from the size before, on a logarithmic scale.
            start = 0 if not rules else int((nbytes * _before(nbytes)) ** 0.5)
            rules.append([start, best])
    return rules


def _before(nbytes: int) -> int:
    return SIZES_BYTES[max(0, SIZES_BYTES.index(nbytes) - 1)]


def _times(
    comm: Communicator, collective: Collective, nbytes: int, names: list[str], each_s: float
) -> dict[str, float]:
    """Return the seconds per call of each algorithm: the best of several repeats, in each of which all take turns."""
    found = np.full(len(names), np.inf)
    with_calls = dict(zip(names, (list(_call(comm, collective, nbytes, name)) for name in names), strict=True))
    calls = np.ones(len(names), np.int64)
    for turn in range(REPEATS + 1):
        for index, name in enumerate(names):
            call = with_calls[name][0]
            comm.barrier()
            began = time.perf_counter()
            for _ in range(calls[index]):
                call()
            spent = np.array([(time.perf_counter() - began) / calls[index]])
            comm.all_reduce(spent, op="max")
            if turn:  # the first repeat warms up, and determines how many calls fit
                found[index] = min(found[index], spent[0])
            else:
                calls[index] = max(1, min(2000, int(each_s / max(spent[0], 1e-7))))
    return dict(zip(names, found.tolist(), strict=True))


def _call(comm: Communicator, collective: Collective, nbytes: int, name: str) -> Iterator[Callable[[], Any]]:
    """Yield a function that calls the collective on new arrays."""
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
