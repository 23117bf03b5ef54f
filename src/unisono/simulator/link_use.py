"""Computes the part of the bandwidth of each link that is in use at each moment of a simulation.

*Flow*: the bytes of one message, or of one segment of it, while they pass through their links. Where messages share
links, the rates of all flows follow from the set of flows at that moment: they are max-min fair. Where messages do
not share, a flow passes at the rate of the narrowest link of its route.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unisono.networks import Network
from unisono.simulator.actions import Array, Programs
from unisono.simulator.costs import LAST, WHOLE, Costs
from unisono.simulator.reference import Times

MOST_FLOWS = 40_000
SAME = 1e-9  # relative difference of two shares that are equal


@dataclass(frozen=True)
class LinkUse:
    """The use of links over time: from ``time_s`` on, ``used`` of the bandwidth of ``link`` is in use (0 to 1).

    The three arrays have an entry for each change, sorted by link, then by time. A link that carries nothing has no
    entry.
    """

    link: Array
    time_s: Array
    used: Array


def link_use(
    programs: Programs, costs: Costs, times: Times, network: Network, contention: bool, begin_s: float
) -> LinkUse | None:
    """Return the use of all links, with ``begin_s`` added to all times; None if there are too many flows."""
    received, bandwidth = programs.receives, network.links(programs.size).bandwidth
    if costs.passes * len(received) > MOST_FLOWS or not costs.routes.shape[1]:
        return None
    which = np.array([LAST if number == costs.passes - 1 else WHOLE for number in range(costs.passes)])
    nbytes = costs.link_bytes[which][:, received].ravel()
    transfer = costs.transfer_s[which][:, received].ravel()
    arrival = times.arrival[:, received].ravel()
    leave = times.leave[:, programs.sender[received]].ravel()
    route = costs.routes[np.tile(costs.pair[received], costs.passes)]
    moving = (transfer > 0.0) & (nbytes > 0.0)
    nbytes, transfer, arrival, leave = nbytes[moving], transfer[moving], arrival[moving], leave[moving]
    route = route[moving]
    if contention:
        end = arrival - np.tile(costs.flight_s[received], costs.passes)[moving]
        changes = _shared(route, leave, end, bandwidth)
    else:
        changes = _alone(route, leave, arrival, transfer, nbytes, bandwidth, network.endpoint.synchronous)
    return _as_use(*changes, begin_s)


def fair_rates(routes: Array, bandwidth: Array) -> Array:
    """Return the max-min fair rate of each flow; a row of ``routes`` lists its links, then -1.

    >>> fair_rates(np.array([[0, -1], [0, 1], [1, -1]]), np.array([1.0, 3.0])).tolist()
    [0.5, 0.5, 2.5]
    """
    rates = np.full(len(routes), np.inf)
    used, links = routes >= 0, np.where(routes >= 0, routes, 0)
    left, waiting = bandwidth.astype(float).copy(), used.any(axis=1)
    while waiting.any():
        taken = links[waiting][used[waiting]]
        users = np.bincount(taken, minlength=len(bandwidth))
        share = np.divide(left, users, where=users > 0, out=np.full(len(bandwidth), np.inf))
        least = max(float(share.min()), 0.0)
        tightest = share <= least * (1 + SAME)
        chosen = waiting & (tightest[links] & used).any(axis=1)
        rates[chosen] = least
        left -= np.bincount(links[chosen][used[chosen]], minlength=len(bandwidth)) * least
        waiting &= ~chosen
    return rates


def _shared(route: Array, begin: Array, end: Array, bandwidth: Array) -> tuple[Array, Array, Array]:
    """Return every change of the use of a link: link, time, and by how much its use changes."""
    moments = np.unique(np.concatenate([begin, end]))
    first, last = np.searchsorted(moments, begin), np.searchsorted(moments, end)
    starting, ending = np.argsort(first, kind="stable"), np.argsort(last, kind="stable")
    starts = np.searchsorted(first[starting], np.arange(len(moments) + 1))
    ends = np.searchsorted(last[ending], np.arange(len(moments) + 1))
    active = np.zeros(len(route), dtype=bool)
    before = np.zeros(len(bandwidth))
    found: list[tuple[Array, float, Array]] = []
    known: dict[bytes, Array] = {}  # rounds of an algorithm repeat the same set of routes
    for index, moment in enumerate(moments.tolist()):
        active[ending[ends[index] : ends[index + 1]]] = False
        active[starting[starts[index] : starts[index + 1]]] = True
        routes = route[active]
        routes = routes[np.lexsort(routes.T)]
        key = routes.tobytes()
        if key not in known:
            known[key] = _use(routes, fair_rates(routes, bandwidth), bandwidth)
        changed = np.flatnonzero(known[key] != before)
        found.append((changed, moment, known[key][changed] - before[changed]))
        before = known[key]
    link = np.concatenate([each[0] for each in found]) if found else np.empty(0, np.int64)
    time = np.concatenate([np.full(len(each[0]), each[1]) for each in found]) if found else np.empty(0)
    change = np.concatenate([each[2] for each in found]) if found else np.empty(0)
    return link, time, change


def _use(routes: Array, rates: Array, bandwidth: Array) -> Array:
    """Return the part of the bandwidth of each link that flows use."""
    used = routes >= 0
    total = np.bincount(routes[used], np.repeat(rates, used.sum(axis=1)), minlength=len(bandwidth))
    return np.asarray(np.divide(total, bandwidth, where=np.isfinite(bandwidth), out=np.zeros(len(bandwidth))))


def _alone(
    route: Array, leave: Array, arrival: Array, transfer: Array, nbytes: Array, bandwidth: Array, synchronous: bool
) -> tuple[Array, Array, Array]:
    """Return every change of the use of a link: link, time, and by how much its use changes.

    The bytes pass the links of the sender as soon as the message leaves, and the last link just before it arrives, as
    it may wait for its turn there. A synchronous message first waits for its latency.
    """
    lengths = (route >= 0).sum(axis=1)
    flow, hop = np.nonzero(route >= 0)
    link = route[flow, hop]
    late = (hop == lengths[flow] - 1) | synchronous
    begin = np.where(late, arrival[flow] - transfer[flow], leave[flow])
    used = nbytes[flow] / transfer[flow] / bandwidth[link]
    return np.tile(link, 2), np.concatenate([begin, begin + transfer[flow]]), np.concatenate([used, -used])


def _as_use(link: Array, time: Array, change: Array, begin_s: float) -> LinkUse:
    """Add changes up, link by link; those of one moment become one entry."""
    order = np.lexsort((time, link))
    link, time, change = link[order], time[order], change[order]
    if not len(link):
        return LinkUse(link, time, change)
    total = np.cumsum(change)
    first = np.flatnonzero(np.append(True, link[1:] != link[:-1]))
    before = np.repeat(np.append(0.0, total)[first], np.diff(np.append(first, len(link))))
    last = np.append((link[1:] != link[:-1]) | (time[1:] != time[:-1]), True)
    used = np.where(np.abs(total - before) < SAME, 0.0, np.clip(total - before, 0.0, 1.0))
    return LinkUse(link[last], time[last] + begin_s, used[last])
