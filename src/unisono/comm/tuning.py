"""Measures the algorithms on the hosts of a communicator, and finds the fastest one by collective and bytes.

All ranks measure together and decide alike, by the time of the slowest rank. An algorithm that is far behind at two
sizes in a row is not measured at the next ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unisono import collectives
from unisono.bootstrap.job_config import Table
from unisono.collectives import Collective, barrier
from unisono.comm import candidates as choice
from unisono.comm.communicator import Communicator
from unisono.comm.topology import topology_of
from unisono.compiler import Hosts

SIZES_BYTES = (8, 256, 2048, 16 << 10, 128 << 10, 1 << 20, 8 << 20, 32 << 20)
REPEATS = 3
FAR_BEHIND = 3.0  # times slower than the best at this size: not measured at the next
# A call between slow hosts takes longer than its share of the budget: then the rule of shorter vectors is kept.
MOST_BUDGETS = 3.0
NOT_CLEARLY = 1.05  # a smaller difference is noise: the best algorithm for fewer bytes is kept


class Candidate(NamedTuple):
    """An algorithm that is measured: its name and options in the table, and the argument of a call that uses it."""

    name: str
    options: Mapping[str, Any]
    argument: Any

    def rule(self, from_bytes: int) -> list[Any]:
        """Return the rule of a table from which this candidate is the best."""
        return [from_bytes, self.name, dict(self.options)] if self.options else [from_bytes, self.name]


def tune(comm: Communicator, budget_s: float, own: Mapping[str, Sequence[str]] | None = None) -> Table:
    """Measure every collective; return the table, the same on every rank.

    ``own`` names algorithms of a user, by collective: only these collectives are measured then, with the built-in
    algorithms and these.
    """
    measured = [
        collective for collective in collectives.COLLECTIVES
        if collective is not barrier and (not own or collective.name in own)
    ]  # fmt: skip
    topology = topology_of(comm.size, comm.hosts)
    table: Table = {}
    for collective in measured:
        candidates = candidates_for(collective, comm.size, comm.hosts)
        candidates += [Candidate(name, {}, name) for name in (own[collective.name] if own else ())]
        rules = _rules(comm, collective, candidates, budget_s / len(measured))
        table[collective.name] = {topology: rules}
    return table


def candidates_for(collective: Collective, size: int, hosts: Hosts) -> list[Candidate]:
    """Return the algorithms to measure: those among which a prediction would choose."""
    return [
        Candidate(each.name, each.own, each.schedule(size) if each.own else each.name)
        for each in choice.candidates_for(collective, size, hosts)
        if each.is_practical(size)
    ]


def _rules(
    comm: Communicator, collective: Collective, candidates: list[Candidate], budget_s: float
) -> list[list[Any]]:
    behind = [0] * len(candidates)
    rules: list[list[Any]] = []
    last = -1  # the candidate of the last rule
    began_s = time.perf_counter()
    for nbytes in SIZES_BYTES:
        running = [index for index in range(len(candidates)) if behind[index] < 2]
        each_s = budget_s / len(SIZES_BYTES) / len(running)
        found = call_times(comm, collective, nbytes, [candidates[index].argument for index in running], each_s)
        times = dict(zip(running, found, strict=True))
        best = min(running, key=lambda index: times[index])
        for index in running:
            # An algorithm is dropped when it is far behind twice in a row.
            behind[index] = behind[index] + 1 if times[index] > FAR_BEHIND * times[best] else 0
        if last not in times or times[last] > NOT_CLEARLY * times[best]:
            # The rule begins half-way from the size before, on a logarithmic scale.
            start = 0 if not rules else int((nbytes * _before(nbytes)) ** 0.5)
            rules.append(candidates[best].rule(start))
            last = best
        spent_s = np.array([time.perf_counter() - began_s])
        comm.all_reduce(spent_s, op="max")  # all ranks stop at the same size
        if spent_s[0] > MOST_BUDGETS * budget_s:
            break
    return rules


def _before(nbytes: int) -> int:
    return SIZES_BYTES[max(0, SIZES_BYTES.index(nbytes) - 1)]


def call_times(
    comm: Communicator, collective: Collective, nbytes: int, algorithms: Sequence[Any], each_s: float
) -> list[float]:
    """Return the seconds per call of each algorithm: the best of several repeats, in each of which all take turns.

    ``each_s`` is the time for all calls of one algorithm.
    """
    found = np.full(len(algorithms), np.inf)
    functions = [next(_call(comm, collective, nbytes, algorithm)) for algorithm in algorithms]
    for call in functions:
        call()  # makes the plan, which may take longer than a thousand further calls
    calls = np.ones(len(algorithms), np.int64)
    for turn in range(REPEATS + 1):
        for index, call in enumerate(functions):
            comm.barrier()
            began = time.perf_counter()
            for _ in range(calls[index]):
                call()
            spent = np.array([(time.perf_counter() - began) / calls[index]])
            comm.all_reduce(spent, op="max")
            if turn:  # the first repeat warms up, and determines how many calls fit
                found[index] = min(found[index], spent[0])
            else:
                calls[index] = max(1, min(2000, int(each_s / (REPEATS + 1) / max(spent[0], 1e-7))))
    return [float(seconds) for seconds in found]


def _call(comm: Communicator, collective: Collective, nbytes: int, algorithm: Any) -> Iterator[Callable[[], Any]]:
    """Yield a function that calls the collective on new arrays."""
    size = comm.size
    count = max(1, nbytes // 4 // size) * size if collective.blocked else max(1, nbytes // 4)
    whole, part = np.zeros(count, np.float32), np.zeros(max(1, count // size), np.float32)
    method = getattr(comm, collective.name)
    if collective.single_array:
        yield lambda: method(whole, algorithm=algorithm)
    elif collective.name == "all_to_all":
        other = np.zeros_like(whole)
        yield lambda: method(other, whole, algorithm=algorithm)
    else:
        before = collective.held_before(comm.rank, size, size)
        after = collective.held_after(comm.rank, size, size)
        arrays = {size: whole, 1: part, 0: None}
        if size == 1:
            arrays, part = {1: whole}, np.zeros_like(whole)
            yield lambda: method(part, whole, algorithm=algorithm)
            return
        out, source = arrays[len(after)], arrays[len(before)]
        yield lambda: method(out, source, algorithm=algorithm)
