"""Links that several messages use: whether there are any, and which links carry the same messages.

*Flow*: the messages from the rank of a port to its peer. All of them take the same route.
*Class of links*: links of one bandwidth that the same numbers of flows of each class cross. Classes of ranks and of
links are found together (classes.py): ranks of one class send over links of the same classes. Where a flow gets its
fair part of a link, every flow of its class gets the same part of another link of that class. So one flow, which
counts on each class of links as often as flows of its class are on one link, stands for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unisono.networks import Network
from unisono.simulator.actions import Array, Programs
from unisono.simulator.costs import Costs
from unisono.simulator.hashing import mixed, sums

UNUSED = -1


def meet(routes: Array, source: Array, target: Array, network: Network) -> bool:
    """Return whether routes meet on a link, other than one that belongs to their sender or receiver.

    Messages of the same sender, or receiver, take turns at its port already, if it has one port.
    """
    links = int(routes.max(initial=UNUSED)) + 1
    by_source, by_target = _shared_by(routes, source, links), _shared_by(routes, target, links)
    return bool((by_source | by_target if network.endpoint.ports > 1 else by_source & by_target).any())


def _shared_by(routes: Array, ends: Array, links: int) -> Array:
    """Return which links the routes of several ranks use; ``ends`` is the rank of each route."""
    user = np.full(links, UNUSED)
    for column in routes.T:
        user[column[column >= 0]] = ends[column >= 0]
    shared = np.zeros(links, bool)
    for column in routes.T:
        used = column >= 0
        shared[column[used][user[column[used]] != ends[used]]] = True
    return shared


class Crossings:
    """The links that flows cross, for the search of classes."""

    def __init__(self, routes: Array, sends: Array, bandwidth: Array) -> None:
        """Keep the routes of the ports that send; ``bandwidth`` is that of each link."""
        self.count = len(routes)
        self.flows = np.flatnonzero(sends)
        crossed = routes[self.flows]
        used = crossed >= 0
        lengths = used.sum(axis=1)
        self.link = crossed[used]  # of crossings, those of a flow one after another
        self.first_of_flow = np.concatenate([[0], np.cumsum(lengths)])
        self.bandwidth = bandwidth
        order = np.argsort(self.link, kind="stable")
        self.flow_by_link = np.repeat(np.arange(len(self.flows)), lengths)[order]
        counts = np.bincount(self.link, minlength=len(bandwidth))
        self.first_of_link = np.concatenate([[0], np.cumsum(counts)])
        self._speed = mixed(np.asarray(bandwidth, np.float64).view(np.uint64))

    def link_colours(self, of_port: Array) -> Array:
        """Return a number for each link: the same where the bandwidth and the colours of all flows are the same."""
        carried = of_port[self.flows][self.flow_by_link]
        found: Array = mixed(self._speed + sums(carried, self.first_of_link))
        return found

    def route_colours(self, of_port: Array) -> Array:
        """Return a number for each port: the same where the colours of the links on its route are the same."""
        found = np.zeros(self.count, np.uint64)
        found[self.flows] = mixed(sums(mixed(self.link_colours(of_port))[self.link], self.first_of_flow))
        return found

    def link_classes(self, of_port: Array) -> LinkClasses:
        """Return the classes of links; ``of_port`` are the colours of flows."""
        used = np.flatnonzero(np.diff(self.first_of_link))
        _, first, numbers, counts = np.unique(
            self.link_colours(of_port)[used], return_index=True, return_inverse=True, return_counts=True
        )
        of_link = np.full(len(self.bandwidth), UNUSED)
        of_link[used] = numbers
        return LinkClasses(of_link, used[first], counts)


@dataclass(frozen=True)
class LinkClasses:
    """A partition of the links that messages use."""

    of_link: Array
    representative: Array  # of classes: a link
    counts: Array  # of classes

    def fold(self, costs: Costs, programs: Programs) -> Costs:
        """Return costs with routes over classes of links; the units of ``programs`` stand for classes of ranks."""
        received = programs.receives
        ranks = np.empty(len(costs.routes), np.int64)  # for which the receiver of a message stands
        ranks[costs.pair[received]] = programs.counts[programs.unit[received]]
        routes = np.where(costs.routes >= 0, self.of_link[costs.routes], UNUSED)
        routes = -np.sort(-routes, axis=1)  # equal classes side by side, and the empty entries last
        flows = np.zeros(routes.shape, np.int64)  # of the class of a message, on all links of a class
        visits = np.ones(len(routes), np.int64)  # to the class of a hop, so far
        for hop in range(routes.shape[1]):
            again = routes[:, hop - 1] == routes[:, hop] if hop else np.zeros(len(routes), bool)
            visits = np.where(again, visits + 1, 1)
            flows[:, hop] = visits * ranks
            routes[again, hop - 1] = UNUSED
        counts = np.where(routes >= 0, self.counts[routes], 1)
        assert not (flows % counts).any()  # every link of a class carries the same number
        weights = np.where(routes >= 0, flows // counts, 0)
        return replace(costs, routes=routes, weights=weights)
