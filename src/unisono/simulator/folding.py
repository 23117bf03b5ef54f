"""Builds the programs of the units of a simulation: one for each class of ranks.

The unit of a class executes the program of one rank of it. Where that rank receives from a peer, the unit receives
from the unit of the peer's class. As classes agree on ports in both directions, each message that a unit receives is
sent by exactly one action of exactly one unit, which may be the same unit: a ring of equal ranks is one unit that
sends messages to itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unisono import collectives
from unisono.networks import Network
from unisono.schedule import Schedule
from unisono.simulator.actions import ACTION, NOTHING, Array, Programs
from unisono.simulator.classes import Classes, Ports, classes_of, every_rank, ports_of
from unisono.simulator.paths import record
from unisono.simulator.templates import Hosts, Template, templates_of


class Folded(NamedTuple):
    """The programs of classes, and the class of each rank."""

    programs: Programs
    classes: Classes


def fold(
    schedule: Schedule, network: Network, per_host: int, rounds: bool = False, fold_: bool = True
) -> Folded | None:
    """Compile all ranks, and find classes of them (or, with ``fold_`` False, make every rank a class).

    ``per_host`` ranks share the memory of a host; ``rounds``: a codec rounds what is sent. None is returned where the
    messages of the programs do not match; executing the programs then shows why.
    """
    size, collective = schedule.size, collectives.find(schedule.collective)
    hosts = Hosts(size, per_host)
    templates = list(templates_of(schedule, collective, record(schedule), hosts, rounds))
    ports = ports_of(size, templates)
    if ports is None:
        return None
    classes = classes_of(size, templates, ports, network) if fold_ else every_rank(size)
    programs = _programs(size, templates, ports, classes)
    return None if programs is None else Folded(programs, classes)


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
    # Several classes may share a channel only if a class sends to itself through the same port: drop repetitions.
    by_sent, by_taken = np.lexsort((sending, sent)), np.lexsort((receiving, taken))
    if len(sent) != len(taken) or (sent[by_sent] != taken[by_taken]).any():
        return None
    sender[receiving[by_taken]] = sending[by_sent]
    if (rows["chunks"][sender[receiving]] != rows["chunks"][receiving]).any():
        return None
    return sender
