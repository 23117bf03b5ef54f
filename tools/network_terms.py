"""Finds the cost terms of programs on networks whose ranks have ports, for ``tools/cost_terms.py``.

The paths come from ``costs/port_paths.py``, where messages that meet at a port take turns. Where several ranks of a
host send through NICs, the simulator shares links among messages, max-min fair, which may take longer. So the bytes
of each path are multiplied by the factor with which it takes as long as the simulated program.
"""

from __future__ import annotations

from dataclasses import replace

from unisono.comm.topology import hosts_of
from unisono.compiler.geometry import DEPTH, TRACKS_BETWEEN_HOSTS
from unisono.costs.port_paths import CONDITIONS, Conditions, PortProgram
from unisono.costs.terms import Part, Path, Terms
from unisono.networks import Endpoint, Near, Network, Nics
from unisono.networks.fabrics import RailOptimized, Switch
from unisono.schedule import Schedule
from unisono.simulator import events
from unisono.simulator.actions import room_of
from unisono.simulator.costs import costs_of, cut
from unisono.simulator.simulation import units_of

US = 1e-6
FEW, MANY = 5, 9  # passes, whose difference shows what a further one adds
LEAST_SHARE = 0.25  # of the time that bytes must take to be scaled
NOTHING = Conditions(*[1e-6] * len(Conditions._fields))
BYTES_ONLY = CONDITIONS[-2]


class Simulation:
    """A program on hosts with ranks and NICs, to be simulated under several conditions."""

    def __init__(self, schedule: Schedule, hosts: int, ranks: int, nics: int) -> None:
        self.schedule, self.hosts = schedule, hosts
        self.network = Network(
            "conditions", hosts=hosts, ranks_per_host=ranks, near=Near(kind="switch", latency_s=US, bandwidth=1e9),
            nics=Nics(count=nics, latency_s=8 * US, bandwidth=1e8),
            fabric=RailOptimized(hosts_per_switch=hosts) if nics > 1 else Switch(),
        )  # fmt: skip
        self.units = units_of(schedule, self.network, None, None)
        self.room = room_of(self.units.programs, DEPTH)

    def time(
        self, conditions: Conditions, passes: int = 1, rendezvous: float | None = None, in_turn: bool = False
    ) -> float:
        """Return the time of some passes under these conditions, in their unit.

        ``rendezvous`` is the time that every message takes longer because both sides must be ready (default: they
        need not be); ``in_turn``: the two directions of an exchange take turns.
        """
        near, far, busy, near_bytes, far_bytes, copied, reduced = (each * US for each in conditions)
        network = replace(
            self.network,
            endpoint=Endpoint(
                send_overhead_s=busy, receive_overhead_s=busy, send_s_per_byte=copied, receive_s_per_byte=copied,
                reduce_s_per_byte=reduced, copy_s_per_byte=copied, eager_bytes=None if rendezvous is None else 0,
                rendezvous_s=(rendezvous or 0.0) * US, exchange_bytes=0 if in_turn else None,
            ),
            near=replace(self.network.near, latency_s=near, bandwidth=1 / near_bytes),
            nics=replace(self.network.nics, latency_s=far, bandwidth=1 / far_bytes),
        )  # fmt: skip
        chunks, programs = self.schedule.chunks, self.units.programs
        tracks = TRACKS_BETWEEN_HOSTS if self.hosts > 1 else 1
        sizes = cut(passes, chunks, 1 / chunks, passes, tracks, None, 0.0)  # a vector of one byte in each pass
        costs, links = self.units.on_links(costs_of(programs, network, sizes), network)
        outcome = events.run(programs, costs, self.room, links, record=False)
        assert outcome is not None, "a program that was proved does not deadlock"
        return float(outcome.unit_s.max(initial=0.0)) / US


def network_terms(schedule: Schedule, hosts: int, ranks: int, nics: int) -> Terms:
    """Return the cost terms of a program on hosts with this number of ranks and NICs."""
    program, chunks = PortProgram(schedule, hosts_of((ranks,) * hosts), nics), schedule.chunks
    parts = [program.part(each) for each in CONDITIONS]
    work = program.busiest()
    simulation = Simulation(schedule, hosts, ranks, nics)
    if hosts > 1:
        if ranks > 1:
            parts = [
                part._replace(first=_as_long(part.first, simulation.time(each), each, chunks))
                for part, each in zip(parts, CONDITIONS, strict=True)
            ]
        further = (simulation.time(BYTES_ONLY, MANY) - simulation.time(BYTES_ONLY, FEW)) / (MANY - FEW)
        work = _as_long(work, further, BYTES_ONLY, chunks)
    links = NOTHING._replace(near_bytes=1.0, far_bytes=1.0)
    in_turn = simulation.time(links, in_turn=True) - simulation.time(links)
    handshakes = round(simulation.time(NOTHING, rendezvous=1.0))
    work = work._replace(handshakes=handshakes, exchanged=max(0.0, round(in_turn * chunks, 2)))
    return Terms(chunks, program.most_sent, tuple(_longest(parts)), work, ranks, 0)


def _as_long(path: Path, time: float, conditions: Conditions, chunks: int) -> Path:
    """Return a path with as many bytes on links as make it take this time, if it depends on them."""
    busy = conditions.busy * (path.sends + path.receives)
    copied = conditions.copied * (path.sent + path.received + path.copied) + conditions.reduced * path.reduced
    latency = conditions.near * path.near + conditions.far * path.far
    moved = (conditions.near_bytes * path.passing + conditions.far_bytes * path.crossing) / chunks
    if moved < LEAST_SHARE * time:
        return path
    factor = max(0.5, (time - busy - copied / chunks - latency) / moved)
    return path._replace(passing=round(factor * path.passing, 2), crossing=round(factor * path.crossing, 2))


def _longest(parts: list[Part]) -> list[Part]:
    """Return the parts, where those that are never the longest are replaced by another one with no smaller count.

    Their number stays the same, so that those of different topologies can be interpolated.
    """
    found = list(parts)
    for number, part in enumerate(parts):
        found[number] = next((other for other in found if _covers(other, part)), part)
    return found


def _covers(one: Part, other: Part) -> bool:
    pairs = (*zip(one.first, other.first, strict=True), *zip(one.further, other.further, strict=True))
    return all(mine >= theirs for mine, theirs in pairs)
