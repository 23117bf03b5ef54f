"""Finds what each atom has to wait for, from the memory that the atoms read and write.

An atom reads what the last atom before it wrote, and overwrites what all earlier atoms have finished reading and
writing. At the end of a pass each rank waits until no other rank uses its memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from unisono.gpu.ordering import memory
from unisono.gpu.places import Atom


class Hazards:
    """Follows the accesses to memory, atom by atom."""

    def __init__(self, aliased: bool) -> None:
        self.aliased = aliased
        self.written: dict[Hashable, Atom] = {}  # by memory: the last atom that wrote it
        self.read: dict[Hashable, list[Atom]] = {}  # since then

    def add(self, atom: Atom) -> None:
        """Find the atoms that must be complete before this one, and its level: the longest path to it."""
        after: dict[Atom, None] = {}
        reads = [*(memory(place, self.aliased) for place in atom.sources), *atom.reads]
        writes = [*(memory(place, self.aliased) for place in atom.destinations), *atom.writes]
        for key in reads:
            if key in self.written:
                after[self.written[key]] = None
        for key in writes:
            after.update(self._users(key))
        for key in reads:
            self.read.setdefault(key, []).append(atom)
        for key in writes:
            self.written[key] = atom
            self.read[key] = []
        after.pop(atom, None)
        atom.after = list(after)
        atom.level = 1 + max((other.level for other in after), default=-1)

    def add_end(self, rank: int, own_levels: Iterable[int]) -> Atom:
        """Return the end of a pass of a rank, which comes after everything that touches its memory."""
        end = Atom(rank)
        after: dict[Atom, None] = {}
        for key in [*self.written, *self.read]:
            if isinstance(key, tuple) and (key[0] == rank or key == ("arrived", rank)):
                after.update(self._users(key))
        end.after = list(after)
        end.level = 1 + max([other.level for other in after] + list(own_levels), default=-1)
        return end

    def _users(self, key: Hashable) -> dict[Atom, None]:
        users = dict.fromkeys(self.read.get(key, []))
        if key in self.written:
            users[self.written[key]] = None
        return users
