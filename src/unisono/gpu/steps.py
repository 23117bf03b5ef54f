"""Groups the atoms of each rank into steps, and turns dependencies between ranks into signals and waits.

All atoms of a rank on the same level form a step. A step waits only for steps of lower levels, so the ranks never
wait in a cycle, and the number of synchronizations on the longest path is the least that the dependencies allow.

A wait is left out where earlier waits imply it (the *clock* of a step says which steps of other ranks are complete
once it begins), and only signals that a peer waits for are sent.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from unisono.gpu.places import Atom, Place
from unisono.gpu.program import APART, Sync

MOST_DESTINATIONS = 255  # of a move


@dataclass(frozen=True)
class PlacedMove:
    """A move between places."""

    sources: tuple[Place, ...]
    destinations: tuple[Place, ...]
    flags: int

    @property
    def length_of(self) -> int:
        """A slot as long as the chunk that is moved."""
        return self.sources[0].length_of


@dataclass
class PlacedStep:
    """A step whose moves are between places."""

    level: int
    atoms: list[Atom] = field(default_factory=list)
    waits: list[Sync] = field(default_factory=list)
    moves: list[PlacedMove] = field(default_factory=list)
    signals: list[Sync] = field(default_factory=list)


def steps_of(atoms: list[Atom], size: int) -> list[list[PlacedStep]]:
    """Return the steps of each rank. The atoms know their levels, and what they come after."""
    programs: list[list[PlacedStep]] = []
    for rank in range(size):
        by_level: dict[int, PlacedStep] = {}
        for atom in atoms:
            if atom.rank == rank:
                by_level.setdefault(atom.level, PlacedStep(atom.level)).atoms.append(atom)
        steps = [by_level[level] for level in sorted(by_level)]
        for index, step in enumerate(steps):
            for atom in step.atoms:
                atom.step = index
            step.moves = _merged(step.atoms)
        programs.append(steps)
    _synchronize(programs, _needs(programs))
    return [_joined(steps) for steps in programs]


def _joined(steps: list[PlacedStep]) -> list[PlacedStep]:
    """Join steps between which nothing is waited for or signalled; a barrier is enough there."""
    found: list[PlacedStep] = []
    for step in steps:
        if found and not step.waits and not found[-1].signals:
            found[-1].moves += step.moves
            found[-1].signals = step.signals
        elif step.waits or step.moves or step.signals:
            found.append(step)
    return found


Need = dict[int, int]  # by rank: the index of its step that must be complete


def _needs(programs: list[list[PlacedStep]]) -> dict[tuple[int, int], Need]:
    """Return for each step, by rank and index, the waits that are not implied by others."""
    size = len(programs)
    found: dict[tuple[int, int], Need] = {}
    clocks: dict[tuple[int, int], list[int]] = {}  # of a completed step: the complete steps of each rank
    order = sorted(
        (step.level, rank, index) for rank, steps in enumerate(programs) for index, step in enumerate(steps)
    )
    for _, rank, index in order:
        wanted: Need = {}
        for atom in programs[rank][index].atoms:
            for other in atom.after:
                if other.rank != rank:
                    wanted[other.rank] = max(wanted.get(other.rank, -1), other.step)
        clock = list(clocks[rank, index - 1]) if index else [-1] * size
        kept: Need = {}
        for peer in sorted(wanted, key=lambda peer: programs[peer][wanted[peer]].level, reverse=True):
            if clock[peer] < wanted[peer]:
                kept[peer] = wanted[peer]
                clock = list(map(max, clock, clocks[peer, wanted[peer]]))
        clock[rank] = index
        clocks[rank, index] = clock
        found[rank, index] = kept
    return found


def _synchronize(programs: list[list[PlacedStep]], needs: dict[tuple[int, int], Need]) -> None:
    """Add the waits and the signals, and number those of each pair."""
    signalled: dict[tuple[int, int], set[int]] = defaultdict(set)  # by sender and receiver: after which steps
    for (rank, _), need in needs.items():
        for peer, step in need.items():
            signalled[peer, rank].add(step)
    counts: dict[tuple[int, int, int], int] = {}
    for (sender, receiver), steps in sorted(signalled.items()):
        for count, step in enumerate(sorted(steps), 1):
            counts[sender, receiver, step] = count
            programs[sender][step].signals.append(Sync(receiver, count))
    for (rank, index), need in sorted(needs.items()):
        programs[rank][index].waits += [Sync(peer, counts[peer, rank, step]) for peer, step in sorted(need.items())]


def _merged(atoms: list[Atom]) -> list[PlacedMove]:
    """Return the moves of a step, all but the first one apart; copies of the same place become one move."""
    moves: list[PlacedMove] = []
    copies: dict[tuple[Place, int], int] = {}
    for atom in atoms:
        if not atom.destinations:
            continue
        if len(atom.sources) == 1:
            first = copies.setdefault((atom.sources[0], atom.flags), len(moves))
            if first < len(moves) and len(moves[first].destinations) + len(atom.destinations) <= MOST_DESTINATIONS:
                same = moves[first]
                moves[first] = PlacedMove(same.sources, same.destinations + atom.destinations, same.flags)
                continue
        moves.append(PlacedMove(atom.sources, atom.destinations, atom.flags | (APART if moves else 0)))
    return moves
