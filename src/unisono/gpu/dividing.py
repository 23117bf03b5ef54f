"""Decides which moves divide, for ``avg``: the result of a call is the sum, divided by the number of ranks.

A move divides the value that it stores if the value is used for nothing but results: then every copy of it is a
result too, or unused. What cannot be divided that way is divided at the end, where it lies.
"""

from __future__ import annotations

from collections.abc import Hashable

from unisono.gpu import program
from unisono.gpu.ordering import memory
from unisono.gpu.places import Atom, Place


def divide(atoms: list[Atom], results: list[Place], aliased: bool) -> list[Atom]:
    """Mark the atoms that divide; return the atoms that remain to be done at the end."""
    origin: dict[Hashable, Atom] = {}  # by memory: the atom whose value it holds
    copied_from: dict[Atom, Atom] = {}
    readers: dict[Atom, list[Atom]] = {atom: [] for atom in atoms}
    for atom in atoms:
        for source in atom.sources:
            before = origin.get(memory(source, aliased))
            if before is not None:
                readers[before].append(atom)
                copied_from[atom] = before
        for place in atom.destinations:
            origin[memory(place, aliased)] = atom
    for_results: set[Atom] = set()
    for atom in reversed(atoms):
        if all(not reader.flags & program.REDUCE and reader in for_results for reader in readers[atom]):
            for_results.add(atom)
    for atom in atoms:
        already = not atom.flags & program.REDUCE and copied_from.get(atom) in for_results
        if atom in for_results and not already:
            atom.flags |= program.DIVIDE
    left = [place for place in results if origin.get(memory(place, aliased)) not in for_results]
    return [Atom(place.rank, (place,), (place,), program.DIVIDE) for place in left]
