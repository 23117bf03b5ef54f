"""Builds the programs of the units of a simulation: one for each class of ranks.

The unit of a class executes the program of one rank of it. Where that rank receives from a peer, the unit receives
from the unit of the peer's class. As classes agree on ports in both directions, each message that a unit receives is
sent by exactly one action of exactly one unit, which may be the same unit: a ring of equal ranks is one unit that
sends messages to itself.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unisono import collectives
from unisono.networks import Network
from unisono.schedule import Schedule
from unisono.simulator.actions import ACTION, NOTHING, Array, Programs
from unisono.simulator.classes import Classes, Ports, RouteTable, classes_of, ports_of
from unisono.simulator.link_sharing import Crossings, meet
from unisono.simulator.paths import record
from unisono.simulator.templates import Hosts, Template, templates_of


@dataclass(frozen=True)
class CompiledRanks:
    """The compiled programs of all ranks, those that are the same but for slots and peers only once."""

    size: int
    templates: list[Template]
    ports: Ports
    carries_data: bool

    @cached_property
    def actions(self) -> int:
        """The number of actions of all ranks."""
        return sum(len(each.ranks) * len(each.rows) for each in self.templates)

    @cached_property
    def chunks(self) -> Array:
        """The number of chunks that leave through each port."""
        found = np.zeros(len(self.ports.rank), np.int64)
        for each in self.templates:
            of_port = np.zeros(each.peers.shape[1], np.int64)
            single = (each.rows["to"] >= 0) & ~each.rows["to_all"]
            np.add.at(of_port, each.rows["to"][single], each.rows["chunks"][single])
            of_port[each.near] += each.rows["chunks"][each.rows["to_all"]].sum(dtype=np.int64)
            numbers = self.ports.first[each.ranks][:, np.newaxis] + np.arange(len(of_port))
            found[numbers] = of_port
        return found

    @cached_property
    def most_sent(self) -> int:
        """The number of chunks that the busiest rank sends; a message to all counts once."""
        sent = (each.rows["chunks"][each.rows["to"] >= 0].sum(dtype=np.int64) for each in self.templates)
        return int(max(1, *sent))

    def classes(self, costs: Array, most: int, passes: int, crossings: Crossings | None = None) -> Classes | None:
        """Return the classes of ranks that behave identically where ports with the same ``costs`` cost the same.

        With ``crossings``, messages share links. None is returned where the classes have more than ``most`` actions.
        """
        found = classes_of(self.size, self.templates, self.ports, costs, most, crossings, passes)
        return None if found is None or self.actions_of(found) > most else found

    def crossings(self, routes: RouteTable, network: Network) -> Crossings | None:
        """Return the links that messages cross; None where they have no bytes, and so share nothing."""
        if not self.carries_data or not routes.links.shape[1]:
            return None
        return Crossings(routes.links, self.chunks > 0, network.links(self.size).bandwidth)

    def near_or_far(self, network: Network) -> Array:
        """Return numbers of ports that only tell ranks of the same host from others."""
        per_host = network.ranks_per_host
        near: Array = self.ports.rank // per_host == self.ports.peer // per_host
        return near.astype(np.uint64)

    def actions_of(self, classes: Classes) -> int:
        """Return the number of actions of one unit per class."""
        lengths = np.array([len(each.rows) for each in self.templates], np.int64)
        return int(lengths[self.ports.template[classes.representative]].sum())

    def missing(self, classes: Classes) -> Array:
        """Return by how many actions the program of each rank is shorter than that of the rank that stands for it."""
        lengths = np.array([len(each.rows) for each in self.templates], np.int64)[self.ports.template]
        found: Array = lengths[classes.representative][classes.of_rank] - lengths
        return found

    def class_costs(
        self, programs: Programs, classes: Classes, routes: RouteTable, extreme: np.ufunc | None
    ) -> tuple[Array, Array]:
        """Return latency and seconds per byte of each receive, over the ranks of a class: an extreme, or the mean."""
        ports = self.ports
        # The port of the representative that each port stands for; the message takes the route of the way back.
        of_rank = classes.representative[classes.of_rank]
        same = ports.first[of_rank][ports.rank] + np.arange(len(ports.rank)) - ports.first[ports.rank]
        received = programs.receives
        rank, source = programs.rank[received], programs.rows["source"][received].astype(np.int64)
        order = np.argsort(ports.rank * self.size + ports.peer)
        key = (ports.rank * self.size + ports.peer)[order]
        port = order[np.searchsorted(key, rank * self.size + source)]
        found = []
        for values in (routes.latency_s[ports.back], 1.0 / routes.bandwidth[ports.back]):
            if extreme is None:
                total = np.bincount(same, weights=values, minlength=len(same))
                merged = total / np.maximum(1, np.bincount(same, minlength=len(same)))
            else:
                merged = values.copy()
                extreme.at(merged, same, values)
            column = np.zeros(len(programs.rows))
            column[received] = merged[port]
            found.append(column)
        return found[0], found[1]

    def programs(self, classes: Classes) -> Programs | None:
        """Return the programs of the units; None where messages do not match."""
        return _programs(self.size, self.templates, self.ports, classes)

    def shares_links(self, routes: RouteTable, network: Network) -> bool:
        """Return whether messages of several ranks use the same link."""
        used = np.flatnonzero(self.chunks) if self.carries_data else np.arange(len(self.ports.rank))
        if network.endpoint.synchronous or not len(used):
            return False
        return meet(routes.links[used], self.ports.rank[used], self.ports.peer[used], network)

    def link_bytes(self, routes: RouteTable, links: int, bytes_of_chunk: float) -> Array:
        """Return the bytes that each link carries."""
        carried = self.chunks * bytes_of_chunk
        found = np.zeros(links)
        for hop in routes.links.T:
            used = hop >= 0
            found += np.bincount(hop[used], weights=carried[used], minlength=links)
        return found


def compile_ranks(schedule: Schedule, per_host: int, rounds: bool = False) -> CompiledRanks | None:
    """Compile the programs of all ranks; None where a rank names a peer that does not name it.

    ``per_host`` ranks share the memory of a host; ``rounds``: a codec rounds what is sent.
    """
    collective = collectives.find(schedule.collective)
    hosts = Hosts(schedule.size, per_host)
    with _without_collection():
        templates = list(templates_of(schedule, collective, record(schedule), hosts, rounds))
    ports = ports_of(schedule.size, templates)
    return None if ports is None else CompiledRanks(schedule.size, templates, ports, collective.carries_data)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Pause the search for unreachable objects, which takes a third of the time where a million are made."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _programs(size: int, templates: list[Template], ports: Ports, classes: Classes) -> Programs | None:
    """Return the actions of all units, with each receive matched to the action that sends its message."""
    units = classes.representative
    template = ports.template[units]
    lengths = np.array([len(each.rows) for each in templates])[template]
    first = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.empty(int(first[-1]), ACTION)
    sends: list[tuple[Array, Array]] = []  # the channel of each message, and the action that sends it
    receives: list[tuple[Array, Array]] = []
    for number, each in enumerate(templates):
        chosen = np.flatnonzero(template == number)
        if len(chosen) and len(each.rows):
            _lay_out(each, chosen, units[chosen], rows, first, ports, classes, sends, receives)
    sender = _matched(sends, receives, rows)
    if sender is None:
        return None
    received = np.flatnonzero(sender >= 0)
    rows["source_all"][received] = rows["to_all"][sender[received]]
    return Programs(size, units, classes.counts, first, rows, sender)


def _lay_out(
    template: Template, units: Array, ranks: Array, rows: Array, first: Array, ports: Ports, classes: Classes,
    sends: list[tuple[Array, Array]], receives: list[tuple[Array, Array]],
) -> None:  # fmt: skip
    """Write the actions of the units of one template, and note their messages.

    A channel is named after the port at which its messages are received, on the representative of its class.
    """
    made = template.rows
    actions = first[units][:, np.newaxis] + np.arange(len(made))
    port = ports.first[ranks][:, np.newaxis]  # the first port of each unit
    block = np.tile(made, (len(units), 1))
    to, source = made["to"].astype(np.int64), made["source"].astype(np.int64)
    single = np.flatnonzero((to >= 0) & ~made["to_all"])
    receiving = np.flatnonzero(source >= 0)
    block["to"][:, single] = ports.peer[port + to[single]]
    block["to"][:, made["to_all"]] = ranks[:, np.newaxis]
    block["source"][:, receiving] = ports.peer[port + source[receiving]]
    rows[actions] = block
    everyone = np.flatnonzero(made["to_all"])
    near = np.flatnonzero(template.near)
    sending = np.concatenate([single, np.repeat(everyone, len(near))])
    through = np.concatenate([to[single], np.tile(near, len(everyone))])
    order = np.argsort(sending, kind="stable")
    sending, through = sending[order], through[order]
    reached = ports.back[port + through]
    # The port of the receiver, on the representative of its class.
    of_peer = classes.representative[classes.of_rank[ports.rank[reached]]]
    channel = ports.first[of_peer] + reached - ports.first[ports.rank[reached]]
    sends.append((channel.reshape(-1), actions[:, sending].reshape(-1)))
    receives.append(((port + source[receiving]).reshape(-1), actions[:, receiving].reshape(-1)))


def _matched(sends: list[tuple[Array, Array]], receives: list[tuple[Array, Array]], rows: Array) -> Array | None:
    """Return the action that sends the message of each receive: message k of a channel goes to its k-th receive."""
    sender = np.full(len(rows), NOTHING, np.int64)
    if not sends:
        return sender
    sent, sending = (np.concatenate(parts) for parts in zip(*sends, strict=True))
    taken, receiving = (np.concatenate(parts) for parts in zip(*receives, strict=True))
    by_sent, by_taken = np.lexsort((sending, sent)), np.lexsort((receiving, taken))
    if len(sent) != len(taken) or (sent[by_sent] != taken[by_taken]).any():
        return None
    sender[receiving[by_taken]] = sending[by_sent]
    if (rows["chunks"][sender[receiving]] != rows["chunks"][receiving]).any():
        return None
    return sender
