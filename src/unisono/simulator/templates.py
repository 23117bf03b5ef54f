"""Templates: the compiled program of ranks that differ only in the numbers of their slots and peers.

*Port*: a peer of a rank, numbered in the order in which the program names them. The ranks of a template have the same
ports, with other peers.
*Atom*: consecutive slots that every op of a program names together or not at all. The compiler works on atoms, so
that a message of 65,536 chunks is not 65,536 operands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from unisono.collectives import Collective
from unisono.compiler.buffer_parts import BufferAssignment
from unisono.compiler.dead_stores import drop_dead_stores
from unisono.compiler.fusing import fuse
from unisono.compiler.instructions import Instruction, Lowered
from unisono.compiler.routes import Routes
from unisono.schedule import Schedule
from unisono.schedule.frozen import KINDS
from unisono.schedule.ops import COMBINE, COPY, Op, Step, new_op
from unisono.simulator.actions import Array, actions_of
from unisono.simulator.hashing import mixed
from unisono.simulator.numbers import Values
from unisono.simulator.patterns import Held, patterns
from unisono.simulator.recording import LOCAL, Recording


@dataclass
class Template:
    """The actions of some ranks: ``to`` and ``source`` are ports; their peers are in the columns of ``peers``."""

    ranks: Values
    peers: Values  # (ranks, ports)
    rows: Array  # of ACTION
    near: Values  # bool, of ports: readers of what is sent to all


@dataclass(frozen=True)
class Hosts:
    """Consecutive ranks that share the memory of a host."""

    size: int
    per_host: int

    def near(self, ranks: Values, peers: Values) -> Values:
        """Return which peers are on the same host."""
        found: Values = ranks[:, np.newaxis] // self.per_host == peers // self.per_host
        return found

    def near_count(self, ranks: Values) -> Values:
        """Return the number of other ranks of the host of each rank."""
        return (
            np.minimum((ranks // self.per_host + 1) * self.per_host, self.size)
            - ranks // self.per_host * self.per_host
            - 1
        )


def templates_of(
    schedule: Schedule, collective: Collective, recordings: list[Recording], hosts: Hosts, rounds: bool
) -> Iterator[Template]:
    """Compile the programs of all ranks; those that are the same but for slots and peers, once."""
    for recording in recordings:
        for part in _alike(schedule, collective, recording, hosts, paired=False):
            template, is_whole = _compiled(schedule, collective, part, hosts, rounds)
            if is_whole or len(part.ranks) == 1:
                yield template
                continue
            for same in _alike(schedule, collective, part, hosts, paired=True):
                yield _compiled(schedule, collective, same, hosts, rounds)[0]


def _alike(
    schedule: Schedule, collective: Collective, recording: Recording, hosts: Hosts, paired: bool
) -> Iterator[Recording]:
    """Split a recording into parts that compile to the same program."""
    if len(recording.ranks) == 1:
        yield recording
        return
    ranks, peers = recording.ranks, recording.peers
    held, extent = _held(schedule, collective, ranks)
    first = _first_equal(peers)
    near = hosts.near(ranks, peers)
    key = mixed(hosts.near_count(ranks)) + mixed(extent)
    for column in range(peers.shape[1]):
        key = mixed(key + mixed(first[:, column] * 2 + near[:, column]))
    for chosen in _groups(key):
        part = recording.part(chosen)
        part_held = [Held(each.first[chosen], int(each.width[chosen[0]])) for each in held]
        found = patterns(part, part_held, paired)
        if found is None:
            found = np.arange(len(chosen))
        for same in _groups(found):
            yield part.part(same)


def _groups(keys: Values) -> Iterator[Values]:
    """Yield the indices of equal keys."""
    order = np.argsort(keys, kind="stable")
    _, starts = np.unique(keys[order], return_index=True)
    yield from np.split(order, starts[1:])


def _first_equal(peers: Values) -> Values:
    """Return for each entry of a row the first column with the same value."""
    order = np.argsort(peers, axis=1, kind="stable")
    ordered = np.take_along_axis(peers, order, axis=1)
    begins = np.ones(peers.shape, bool)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.where(begins, np.arange(peers.shape[1]), 0)
    first = np.take_along_axis(order, np.maximum.accumulate(first, axis=1), axis=1)
    found = np.empty_like(peers)
    np.put_along_axis(found, order, first, axis=1)
    return found


def _held(schedule: Schedule, collective: Collective, ranks: Values) -> tuple[list[Any], Values]:
    """Return the slots of input and result as arrays, and a number for each rank that tells their extents apart."""
    found = []
    key = np.zeros(len(ranks), np.int64)
    for part in (collective.held_before, collective.held_after):
        # A condition is linear in the rank, except at the root.
        slots = [part(rank, schedule.size, schedule.chunks, schedule.root or 0) for rank in ranks.tolist()]
        first = np.fromiter((each.start for each in slots), np.int64, len(slots))
        width = np.fromiter(map(len, slots), np.int64, len(slots))
        found.append(SimpleNamespace(first=first, width=width))
        key = key * (schedule.slots + 1) + width
    return found, key


def _compiled(
    schedule: Schedule, collective: Collective, recording: Recording, hosts: Hosts, rounds: bool
) -> tuple[Template, bool]:
    """Compile the program of the first rank; return also whether no local instruction lost an operand."""
    rank = int(recording.ranks[0])
    peers = recording.peers
    first = _first_equal(peers[:1])[0] if peers.shape[1] else np.empty(0, np.int64)
    columns = np.unique(first)
    port_of = np.searchsorted(columns, first)
    peers = peers[:, columns]
    near = hosts.near(recording.ranks[:1], peers[:1])[0]
    missing = bool(hosts.near_count(recording.ranks[:1])[0] > near.sum())
    program = _Program(schedule, collective, recording, rank, port_of)
    me, ports = len(columns), len(columns)
    # A rank of this host to which nothing is sent is one more port.
    readers = (*np.flatnonzero(near).tolist(), me, *([ports + 1] if missing else []))
    routes = _OwnRoutes(program, (readers, tuple(sorted(set(range(ports)) - set(readers)))))  # type: ignore[arg-type]
    assignment = BufferAssignment(program, program, me, None, rounds)  # type: ignore[arg-type]
    made = fuse(list(assignment.instructions(routes, me)))
    results = [assignment.target(slot, slot) for slot in assignment.results] if collective.carries_data else []
    before = _local_operands(made)
    made = drop_dead_stores(made, results)
    rows = actions_of(SimpleNamespace(instructions=made))  # type: ignore[arg-type]
    rows["chunks"] = program.chunk_counts(made)
    return Template(recording.ranks, peers, rows, near), before == _local_operands(made)


def _local_operands(instructions: list[Instruction]) -> list[int]:
    """Return the numbers of operands of local instructions that have several."""
    return [len(each.operands) for each in instructions if each.kind in (COPY, COMBINE) and len(each.operands) > 1]


class _OwnRoutes(Routes):
    """The routes of a program that is compiled alone; the routes of its peers follow later (folding.py)."""

    def goes_to_all(self, writer: int, reader: int, number: int) -> bool:
        """Return False: the compiler only copies the answer."""
        return False


class _Program:
    """The program of one rank with atoms as its slots and ports as its peers: a schedule, as the compiler sees it."""

    def __init__(
        self, schedule: Schedule, collective: Collective, recording: Recording, rank: int, port_of: Values
    ) -> None:
        self.recording, self.port_of = recording, port_of
        self.size, self.chunks, self.root = len(port_of) + 2, schedule.chunks, schedule.root
        self.carries_data, self.single_array = collective.carries_data, collective.single_array
        where = (rank, schedule.size, schedule.chunks, schedule.root or 0)
        held = [collective.held_before(*where), collective.held_after(*where)]
        first = recording.first_slots(0)
        edges = np.concatenate([first, first + recording.width, *([each.start, each.stop] for each in held if each)])
        self.edges = np.unique(edges.astype(np.int64))
        self.widths = np.diff(self.edges)
        self.begins: Values = np.searchsorted(self.edges, first)
        self.ends: Values = np.searchsorted(self.edges, first + recording.width)
        self._held = [self._atoms(each) for each in held]

    def _atoms(self, slots: range) -> range:
        return range(*np.searchsorted(self.edges, [slots.start, slots.stop]).tolist()) if slots else range(0)

    def held_before(self, *_: int) -> range:
        """Return the atoms of the input."""
        return self._held[0]

    def held_after(self, *_: int) -> range:
        """Return the atoms of the result."""
        return self._held[1]

    def program(self, _: int) -> Iterator[Step]:
        """Yield the steps."""
        recording = self.recording
        chunks: list[Any] = [None] * len(recording.kinds)
        others: list[Any] = [None] * len(recording.kinds)
        items = zip(
            recording.item_op.tolist(), recording.item_other.tolist(), self.begins.tolist(), self.ends.tolist(),
            strict=True,
        )  # fmt: skip
        for op, second, begin, end in items:
            listed = others if second else chunks
            atoms: Any = begin if end == begin + 1 else tuple(range(begin, end))
            before = listed[op]
            if before is None:
                listed[op] = atoms
            else:
                listed[op] = _several(before) + _several(atoms)
        kinds = [KINDS[kind] for kind in recording.kinds.tolist()]
        step: list[Op] = []
        last = 0
        ports = self.port_of.tolist()
        numbers, columns = recording.steps.tolist(), recording.column.tolist()
        for kind, number, column, named, other in zip(kinds, numbers, columns, chunks, others, strict=True):
            if number != last:
                yield tuple(step)
                step, last = [], number
            step.append(new_op(Op, (kind, named, other if kind in (COPY, COMBINE) else ports[column])))
        if step:
            yield tuple(step)

    def chunk_counts(self, instructions: list[Any]) -> list[int]:
        """Return the number of chunks of each action."""
        widths = self.widths.tolist()
        found = []
        for made in instructions:
            count = sum([widths[operand.left.slot] for operand in made.operands])
            found += [count] * max(1, len(made.sources))
        return found


def _several(atoms: Any) -> tuple[int, ...]:
    return (atoms,) if type(atoms) is int else atoms


__all__ = ["LOCAL", "Hosts", "Lowered", "Template", "templates_of"]
