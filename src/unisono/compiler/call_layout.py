"""The numbers of a call: where each chunk begins, how long it is, and into how many segments it is cut.

*Segment*: what of a chunk moves in one pass. A message carries a segment of each of its chunks; the whole program is
run once for every segment. All that a rank sends in two passes must fit into its staging area: then no message waits
for room that another message of the same pass holds, and neighbours can be a pass apart.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from unisono.collectives import Collective
from unisono.compiler import messages
from unisono.compiler.instructions import INPUT, OUTPUT, WORK, Lowered, Place
from unisono.errors import UsageError
from unisono.schedule import Schedule, partition

LINE = 64  # segments begin on a cache line of their own where they can
SMALLEST_SEGMENT = 16  # bytes: one complex128
# Short enough for what a pass reads to be in the core's own cache when it is read or written again.
LONGEST_SEGMENT = 128 * 1024
LONGEST_MOVED_SEGMENT = 256 * 1024  # where nothing is added, and so nothing read again
LONGEST_EXCHANGED_SEGMENT = 512 * 1024  # and where all send at once, so that nobody waits for a first segment
# Every message begins on a line of its own, up to 63 bytes behind its beginning, and one of them may have to go round
# the end of the area.
PADDING = 192


class Lengths(NamedTuple):
    """How long the blocks of the vector are, in elements.

    ``input`` is the vector; ``output`` differs from it in an all-to-all only. Where a collective has no blocks, the
    vector is one.
    """

    input: tuple[int, ...]
    output: tuple[int, ...]
    known_to_all: bool = True  # every rank knows all lengths; otherwise, only those of what it sends and receives

    @property
    def equal_blocks(self) -> bool:
        """Whether all blocks are equally long."""
        return self.known_to_all and len(set(self.input)) <= 1


class Block(NamedTuple):
    """What a codec encodes at a time. Blocks begin with the chunk, and a segment has a whole number of them."""

    memory_bytes: int
    wire_bytes: int


@dataclass(frozen=True)
class CallLayout:
    """What the engine needs beside the instructions."""

    extents: bytes
    segment_bytes: int
    passes: int
    work_bytes: int


def chunk_table(blocks: Sequence[int], chunks: int) -> list[tuple[int, int]]:
    """Return offset and length of every chunk, in elements."""
    table, start = [], 0
    for length in blocks:
        for piece in partition(length, chunks // len(blocks)):
            table.append((start + piece.start, piece.stop - piece.start))
        start += length
    return table


def slot_table(schedule: Schedule, collective: Collective, lengths: Lengths) -> list[tuple[int, int]]:
    """Return offset and length of every slot that is not scratch, in elements."""
    table = chunk_table(lengths.input, schedule.chunks)
    return table if collective.in_place else table + chunk_table(lengths.output, schedule.chunks)


def lay_out_call(
    lowered: Lowered, schedule: Schedule, collective: Collective, rank: int, lengths: Lengths, element_bytes: int,
    staging_bytes: int, segment_limit: int | None = None, block: Block | None = None,
) -> CallLayout:  # fmt: skip
    """Compute the numbers of a call; ``block``: what a codec encodes at a time."""
    chunks = schedule.chunks
    table = slot_table(schedule, collective, lengths)
    longest = max(length for _, length in table) * element_bytes
    room = staging_bytes // (2 * lowered.most_sent) - PADDING
    if block is not None:
        room = room // block.wire_bytes * block.memory_bytes
    limit = segment_limit or _longest_segment(collective)
    segment, passes = _segments(schedule, longest, min(room, limit), lengths.known_to_all, block)
    where = (rank, schedule.size, chunks, schedule.root or 0)
    first = {
        INPUT: table[held.start][0] if (held := collective.held_before(*where)) else 0,
        OUTPUT: table[held.start][0] if (held := collective.held_after(*where)) else 0,
    }

    def extent(place: Place) -> bytes:
        start, length = table[place.length_of]
        offset = place.slot * segment if place.buffer == WORK else (start - first[place.buffer]) * element_bytes
        return struct.pack("=QQ", offset, length * element_bytes)

    work_slots = 1 + max((place.slot for place in lowered.places if place.buffer == WORK), default=-1)
    return CallLayout(b"".join(map(extent, lowered.places)), segment, passes, work_slots * segment)


def _longest_segment(collective: Collective) -> int:
    if collective.reduces:
        return LONGEST_SEGMENT
    return LONGEST_MOVED_SEGMENT if collective.rooted else LONGEST_EXCHANGED_SEGMENT


def _segments(schedule: Schedule, longest: int, room: int, equal: bool, block: Block | None) -> tuple[int, int]:
    """Return the bytes of a segment and how many there are."""
    unit = block.memory_bytes if block is not None else LINE if room >= LINE else SMALLEST_SEGMENT
    most = room // unit * unit
    if most <= 0:
        raise UsageError(messages.STAGING_TOO_SMALL(algorithm=schedule.label))
    passes = max(1, -(-longest // most))
    if not equal:
        return most, passes  # ranks know different lengths, but must cut at the same places
    return max(unit, -(-longest // (passes * unit)) * unit), passes
