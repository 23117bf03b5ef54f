"""The event loop in plain Python where messages share the bandwidth of links, max-min fair.

The bytes of a message are a *flow*, from the time at which it leaves; a port of its sender is occupied until they are
through, and the message arrives after its latency. Rates change whenever a flow starts or ends. All of them are
computed anew each time, which is slow and easy to check; the native loop computes only those that can change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unisono.simulator.actions import Array, Programs
from unisono.simulator.costs import QUANTUM_S, Costs
from unisono.simulator.reference import FLOW_END, HEAD, Loop, Times


def run_events_on_links(
    programs: Programs, costs: Costs, room: tuple[Array, Array] | None, bandwidth: Array
) -> Times:
    """Execute all units; ``bandwidth`` is that of each link."""
    return _LinkLoop(programs, costs, room, bandwidth).run()


def fair_rates(routes: list[list[int]], bandwidth: Array, weights: list[list[int]] | None = None) -> list[float]:
    """Return the max-min fair rate of each flow: the link with the smallest share for each of its flows comes first.

    A flow that stands for several ``weights`` says how many of them are on each of its links.

    >>> fair_rates([[0], [0, 1], [1]], np.array([1.0, 3.0]))
    [0.5, 0.5, 2.5]
    >>> fair_rates([[0], [1]], np.array([1.0, 3.0]), [[4], [1]])
    [0.25, 3.0]
    """
    weights = [[1] * len(route) for route in routes] if weights is None else weights
    rates = [float("inf")] * len(routes)
    left = bandwidth.astype(float).copy()
    waiting = set(range(len(routes)))
    while waiting:
        users: dict[int, list[int]] = {}
        counts: dict[int, int] = {}
        for flow in sorted(waiting):
            for link, weight in zip(routes[flow], weights[flow], strict=True):
                users.setdefault(link, []).append(flow)
                counts[link] = counts.get(link, 0) + weight
        if not users:
            break
        tightest = min(users, key=lambda link: (left[link] / counts[link], link))
        rate = float(max(left[tightest], 0.0) / counts[tightest])
        for flow in users[tightest]:
            rates[flow] = rate
            waiting.discard(flow)
            for link, weight in zip(routes[flow], weights[flow], strict=True):
                left[link] -= rate * weight
    return rates


@dataclass
class _Flow:
    action: int
    number: int
    route: list[int]
    weights: list[int]
    left: float
    since: float
    rate: float = 0.0
    version: int = 0


class _LinkLoop(Loop):
    def __init__(self, programs: Programs, costs: Costs, room: tuple[Array, Array] | None, bandwidth: Array) -> None:
        super().__init__(programs, costs, room)
        self.bandwidth = bandwidth
        self.flows: dict[int, _Flow] = {}
        self.flows_of: dict[tuple[int, int], int] = {}  # of a message: those that are not through
        self.used_ports = [0] * programs.units
        self.waiting: list[list[tuple[int, int]]] = [[] for _ in range(programs.units)]
        self.started = 0
        self.changed = False

    def _has_event(self, now: float) -> bool:
        if self.changed and (not self.queue or self.queue[0][0] > now):
            self._share(now)
        return bool(self.queue)

    def _leave(self, now: float, action: int, number: int) -> None:
        unit = self.unit[action]
        if self.used_ports[unit] < self.costs.ports:
            self._start(now, action, number)
        else:
            self.waiting[unit].append((action, number))

    def _start(self, now: float, action: int, number: int) -> None:
        which = self._which(number)
        self.used_ports[self.unit[action]] += 1
        self.times.leave[number, action] = now
        self.flows_of[number, action] = 0
        for reader in self.readers[action]:
            if self.occupied_s[which][reader] > 0.0:
                route, weights = self._route(self.costs.pair[reader])
                nbytes = float(self.costs.link_bytes[which, reader])
                self.flows[self.started] = _Flow(reader, number, route, weights, nbytes, now)
                self.started += 1
                self.flows_of[number, action] += 1
                self.changed = True
            else:
                self._push(now + self.flight_s[reader], HEAD, reader, number)
        if not self.flows_of[number, action]:
            self._release(now, self.unit[action])

    def _route(self, pair: int) -> tuple[list[int], list[int]]:
        links = self.costs.routes[pair]
        used = links >= 0
        weights = np.ones(len(links), np.int64) if self.costs.weights is None else self.costs.weights[pair]
        return links[used].tolist(), weights[used].tolist()

    def _release(self, now: float, unit: int) -> None:
        self.used_ports[unit] -= 1
        if self.waiting[unit]:
            self._start(now, *self.waiting[unit].pop(0))

    def _share(self, now: float) -> None:
        flows = self.flows.values()
        rates = fair_rates([flow.route for flow in flows], self.bandwidth, [flow.weights for flow in flows])
        for (number, flow), rate in zip(self.flows.items(), rates, strict=True):
            if rate != flow.rate:
                flow.left, flow.since = max(0.0, flow.left - flow.rate * (now - flow.since)), now
                flow.rate, flow.version = rate, flow.version + 1
                end = now + round(flow.left / rate / QUANTUM_S) * QUANTUM_S
                self._push(end, FLOW_END, number, flow.version)
        self.changed = False

    def _end_flow(self, now: float, flow: int, version: int) -> None:
        if flow not in self.flows or self.flows[flow].version != version:
            return  # its rate has changed since
        ended = self.flows.pop(flow)
        self.changed = True
        self._push(now + self.flight_s[ended.action], HEAD, ended.action, ended.number)
        message = (ended.number, self.sender[ended.action])
        self.flows_of[message] -= 1
        if not self.flows_of[message]:
            self._release(now, self.unit[message[1]])

    def _head(self, now: float, action: int, number: int) -> None:
        self.times.arrival[number, action] = now
        self._arrive(now, action, number)
