"""Places and atoms: what a device program touches, before the lengths of a call are known.

*Place*: a part of a buffer of any rank. *Atom*: the work of one rank for one chunk of one instruction, which is one
move, and the places that it reads and writes.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from unisono.compiler.instructions import BUFFERS, BufferPart


class Place(NamedTuple):
    """A part of a buffer of a rank; ``buffer`` is INPUT, OUTPUT or SCRATCH of ``program``.

    Work memory and the slots of staged messages are scratch memory; encoded slots are counted separately.
    """

    rank: int
    buffer: int
    slot: int
    length_of: int  # a slot of the same length, and of the same position in the vector
    encoded: bool = False


def place_of(rank: int, part: BufferPart) -> Place:
    """Return the place of a part of a compiled instruction."""
    return Place(rank, BUFFERS.index(part.buffer), part.slot, part.length_of)


@dataclass(eq=False)
class Atom:
    """One move of a rank, or the sending or receiving of an empty message, or the end of a pass."""

    rank: int
    sources: tuple[Place, ...] = ()
    destinations: tuple[Place, ...] = ()
    flags: int = 0
    # Of an atom that moves no data: what it reads and writes all the same.
    reads: tuple[Hashable, ...] = ()
    writes: tuple[Hashable, ...] = ()
    after: list[Atom] = field(default_factory=list)  # atoms of any rank that must be complete before this one
    level: int = 0
    step: int = 0  # index in the program of its rank
