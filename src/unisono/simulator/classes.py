"""Finds classes of ranks that behave identically.

Two ranks are in one class if they have the same compiled program (templates.py), the same costs on the routes to and
from each of their peers, and if the peers at the same port are in one class, too, which see them at the same port of
their own. Then nothing that happens to one of them can differ from what happens to the other: message k of a port is
sent, arrives and is received at the same time for both. Where messages share links, the links on the two routes must
be in the same classes of links, too (link_sharing.py). The coarsest such partition is found by colour refinement:
begin with one colour per program, and repeat telling ranks apart by the colours of their peers, and of links.

*Tail*: the actions of a program after its last message. No other rank notices them, so where a program runs in one
pass, ranks may be in one class if the tail of one begins with the tail of the other.

The author declares nothing. Where no two ranks behave identically every rank is a class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unisono.networks import Network
from unisono.simulator.hashing import mixed, sums
from unisono.simulator.link_sharing import Crossings, LinkClasses
from unisono.simulator.numbers import Values
from unisono.simulator.templates import Template

MOST_ROUNDS = 400  # of refinement; with more, ranks are simulated one by one


@dataclass(frozen=True)
class Ports:
    """The ports of all ranks: those of rank r have the numbers ``first[r]`` to ``first[r + 1] - 1``."""

    first: Values
    rank: Values  # of ports
    peer: Values  # of ports
    back: Values  # of ports: the port of the peer that leads back
    template: Values  # of ranks
    member: Values  # of ranks: the index in the template


@dataclass(frozen=True)
class Classes:
    """A partition of the ranks."""

    of_rank: Values
    representative: Values  # of classes: a rank
    counts: Values  # of classes
    links: LinkClasses | None = None  # where messages share links

    def __len__(self) -> int:
        return len(self.representative)


def ports_of(size: int, templates: list[Template]) -> Ports | None:
    """Number the ports of all ranks; None if a rank names a peer that does not name it."""
    template, member = np.empty(size, np.int64), np.empty(size, np.int64)
    count = np.zeros(size, np.int64)
    for number, each in enumerate(templates):
        template[each.ranks] = number
        member[each.ranks] = np.arange(len(each.ranks))
        count[each.ranks] = each.peers.shape[1]
    first = np.concatenate([[0], np.cumsum(count)])
    rank = np.repeat(np.arange(size), count)
    peer = np.empty(len(rank), np.int64)
    for each in templates:
        ports = each.peers.shape[1]
        peer[(first[each.ranks][:, np.newaxis] + np.arange(ports)).reshape(-1)] = each.peers.reshape(-1)
    key = rank * size + peer
    order = np.argsort(key)
    back = np.searchsorted(key, peer * size + rank, sorter=order)
    back = order[np.minimum(back, max(0, len(order) - 1))] if len(order) else back
    if (key[back] != peer * size + rank).any():
        return None
    return Ports(first, rank, peer, back, template, member)


def classes_of(
    size: int, templates: list[Template], ports: Ports, costs: Values, most: int | None = None,
    crossings: Crossings | None = None, passes: int = 1,
) -> Classes | None:  # fmt: skip
    """Return the classes of ranks that behave identically; ``costs`` are numbers of ports (``route_costs``).

    With ``crossings``, messages share links. None is returned where the classes have more than ``most`` actions. A
    class is represented by its first rank, or by its first rank with the longest tail.
    """
    lengths = np.array([len(each.rows) for each in templates], np.int64)[ports.template]
    colour = (_without_tails(templates) if passes == 1 else _whole(templates))[ports.template]
    index = np.arange(len(ports.rank)) - ports.first[ports.rank]
    fixed = mixed(mixed(index) + mixed(index[ports.back] + (1 << 32)) + costs + mixed(costs[ports.back]))
    found = len(np.unique(colour))
    for _ in range(MOST_ROUNDS):
        seen = mixed(fixed + colour[ports.peer])
        if crossings is not None:
            routes = crossings.route_colours(mixed(seen + mixed(colour)[ports.rank]))
            seen = mixed(seen + routes + mixed(routes[ports.back]))
        colour = mixed(colour + mixed(sums(seen, ports.first)))
        before, found = found, len(np.unique(colour))
        if most is not None and found > before and _total(lengths, colour, found) > most:
            return None
        if found in (before, size):
            break
    else:
        if most is not None and int(lengths.sum()) > most:
            return None
        colour = np.arange(size, dtype=np.uint64)
    _, first, of_rank, counts = np.unique(colour, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)  # classes are numbered by their first ranks
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    of_rank = number[of_rank]
    by_class = np.lexsort((-lengths, of_rank))
    representative = by_class[np.searchsorted(of_rank[by_class], np.arange(len(order)))]
    links = None
    if crossings is not None:
        links = crossings.link_classes(mixed(mixed(of_rank)[ports.rank] + index.astype(np.uint64)))
    return Classes(of_rank, representative, counts[order], links)


def _total(lengths: Values, colour: Values, found: int) -> int:
    """Return the number of actions of one rank of each colour,."""
    if found == len(colour):
        return int(lengths.sum())
    return int(lengths[np.unique(colour, return_index=True)[1]].sum())


def _whole(templates: list[Template]) -> Values:
    """Return a number for each template: the same for those with the same actions."""
    return np.array([_colour(each, len(each.rows)) for each in templates], np.uint64)


def _without_tails(templates: list[Template]) -> Values:
    """Return a number for each template: the same for those with the same actions, one of which may end earlier."""
    talking = [
        int(np.flatnonzero((each.rows["to"] >= 0) | (each.rows["source"] >= 0)).max(initial=-1)) + 1
        for each in templates
    ]
    found = np.array([_colour(each, end) for each, end in zip(templates, talking, strict=True)], np.uint64)
    for colour in np.unique(found):
        same = np.flatnonzero(found == colour)
        longest = max((templates[number].rows for number in same), key=len)
        if any((templates[number].rows != longest[: len(templates[number].rows)]).any() for number in same):
            found[same] = _whole([templates[number] for number in same])
    return found


def _colour(template: Template, end: int) -> Any:
    """Return a number that is the same for templates with the same actions up to ``end``."""
    data = np.frombuffer(template.rows[:end].tobytes() + template.near.tobytes(), np.uint8)
    padded = np.concatenate([data, np.zeros(-len(data) % 8, np.uint8)]).view(np.uint64)
    return mixed(mixed(padded + mixed(np.arange(len(padded)))).sum(dtype=np.uint64) + np.uint64(len(data)))


class RouteTable(NamedTuple):
    """The route from the rank of each port to its peer."""

    links: Values  # (ports, hops): ids, then -1
    latency_s: Values
    bandwidth: Values


def routes_of(size: int, ports: Ports, network: Network) -> RouteTable:
    """Return the routes of all ports."""
    table = network.links(size)
    routes = network.routes(size, ports.rank, ports.peer)
    if not routes.shape[1] or not len(table):
        return RouteTable(routes, np.zeros(len(routes)), np.full(len(routes), np.inf))
    latency, bandwidth = np.zeros(len(routes)), np.full(len(routes), np.inf)
    for hop in routes.T:
        used = hop >= 0
        latency += np.where(used, table.latency_s[hop], 0.0)
        bandwidth = np.where(used, np.minimum(bandwidth, table.bandwidth[hop]), bandwidth)
    return RouteTable(routes, latency, bandwidth)


def route_costs(routes: RouteTable) -> Values:
    """Return a number for each port: the same where routes cost the same."""
    return mixed(mixed(routes.latency_s.view(np.uint64)) + mixed(mixed(routes.bandwidth.view(np.uint64))))
