"""Times below which no algorithm for a collective can get on a network.

The *latency bound* counts processors and latencies only: the number of ranks that know something grows no faster than
by the cheapest message, and the farthest rank is as far as the latency of its route. The *bandwidth bound* counts
bytes only: those that each rank must send or receive at least, and those that must enter or leave a host.
"""

from __future__ import annotations

import heapq

import numpy as np

from unisono.collectives import Collective
from unisono.networks import Network
from unisono.simulator.actions import Array

MOST_HEAP = 1 << 14  # ranks up to which the fastest broadcast of nothing is computed


def latency_bound(collective: Collective, network: Network, size: int) -> float:
    """Return the least time in which every rank that must know something of another can."""
    if size == 1:
        return 0.0
    end = network.endpoint
    latency, _ = _route_totals(network, size, *_pairs(collective, size))
    overhead = end.send_overhead_s + end.receive_overhead_s
    farthest = overhead + float(latency.max())
    if collective.name in ("scatter", "gather", "all_to_all"):
        return farthest  # every rank gets something else: nothing is passed on that others could share
    return max(farthest, _fastest_spread(size, end.send_overhead_s, overhead + float(latency.min())))


def _fastest_spread(size: int, gap: float, delay: float) -> float:
    """Return the time in which one rank reaches ``size``: one message each ``gap``, which takes ``delay``."""
    if gap <= 0.0 or size < 2:
        return delay if size > 1 else 0.0
    free = [0.0]  # when each informed rank can begin to send
    last = 0.0
    for _ in range(min(size, MOST_HEAP) - 1):
        begin = heapq.heappop(free)
        last = max(last, begin + delay)
        heapq.heappush(free, begin + gap)
        heapq.heappush(free, begin + delay)
    return last


def bandwidth_bound(collective: Collective, network: Network, size: int, nbytes: float) -> float:
    """Return the least time in which the bytes that a rank, or a host, must move get through its links."""
    if size == 1 or not collective.carries_data:
        return 0.0
    src, dst = _pairs(collective, size)
    _, bandwidth = _route_totals(network, size, src, dst)
    rate = max(float(bandwidth.max()) * network.endpoint.ports, _entering_rate(network, size))
    bound = float(collective.least_bytes(size)) * nbytes / rate
    hosts = network.hosts_of(size)
    if hosts > 1 and size % network.ranks_per_host == 0:
        # The ranks of a host as one: each needs something of every other in an all_to_all, and shares it otherwise.
        each = network.ranks_per_host if not collective.in_place else 1
        least = float(collective.least_bytes(hosts)) * nbytes * each
        bound = max(bound, least / _leaving_rate(network, size))
    return bound


def _entering_rate(network: Network, size: int) -> float:
    """Return the bytes per second that can enter the first rank, over all links that its routes end with."""
    others = np.arange(1, size)
    routes = network.routes(size, others, np.zeros_like(others))
    last = routes[np.arange(len(others)), (routes >= 0).sum(axis=1) - 1] if routes.shape[1] else np.empty(0, np.int64)
    return float(network.links(size).bandwidth[np.unique(last)].sum()) if len(last) else float("inf")


def _leaving_rate(network: Network, size: int) -> float:
    """Return the bytes per second that can leave the first host: the narrowest set of links that its routes cross."""
    own = np.arange(network.ranks_per_host)
    others = np.arange(network.ranks_per_host, size)
    routes = network.routes(size, np.repeat(own, len(others)), np.tile(others, len(own)))
    bandwidth = network.links(size).bandwidth
    rates = []
    for column in routes.T:
        if (column >= 0).all():  # a set of links that every route crosses
            rates.append(float(bandwidth[np.unique(column)].sum()))
    return min(rates, default=float("inf"))


def _pairs(collective: Collective, size: int) -> tuple[Array, Array]:
    """Return the routes from the first rank, and to it: networks look the same from every host."""
    others = np.arange(1, size)
    first = np.zeros_like(others)
    return np.concatenate([first, others]), np.concatenate([others, first])


def _route_totals(network: Network, size: int, src: Array, dst: Array) -> tuple[Array, Array]:
    routes = network.routes(size, src, dst)
    links = network.links(size)
    if routes.shape[1] == 0:
        return np.zeros(len(src)), np.full(len(src), np.inf)
    used = routes >= 0
    latency = np.where(used, links.latency_s[routes], 0.0).sum(axis=1)
    return latency, np.where(used, links.bandwidth[routes], np.inf).min(axis=1)
