"""The layout of a call: the offset and length of each chunk, and the number of segments into which it is cut.

*Segment*: the part of a chunk that moves in one pass. A message carries a segment of each of its chunks; the whole
program runs once for every segment. Everything that a rank sends in two passes must fit into its staging area: then
no message waits for space that another message of the same pass holds, and neighbours can be a pass apart.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from unisono.collectives import Collective
from unisono.compiler import messages
from unisono.compiler.instructions import INPUT, OUTPUT, WORK, BufferPart, Lowered
from unisono.errors import UsageError
from unisono.schedule import Schedule, partition

LINE = 64  # bytes of a cache line: segments begin on one where they can
SMALLEST_SEGMENT = 16  # bytes: one complex128
# Short enough to stay in the cache of the core until the pass reads or writes it again.
LONGEST_SEGMENT = 128 * 1024
LONGEST_MOVED_SEGMENT = 256 * 1024  # where nothing is added, so that nothing is read again
LONGEST_EXCHANGED_SEGMENT = 512 * 1024  # where all ranks send at once, so that none waits for a first segment
# Between hosts: every pass waits for the network, and a longer one for its copies. Several passes are in flight, so a
# vector is cut into as many segments, unless they become so short that the cost of a message outweighs that.
LONGEST_FAR_SEGMENT = 256 * 1024
SHORTEST_FAR_SEGMENT = 64 * 1024
# Every message begins on a cache line, up to 63 bytes after the end of the one before, and one of them may have to
# wrap around the end of the area.
PADDING = 192


class Lengths(NamedTuple):
    """The lengths of the blocks of the vector, in elements.

    ``input`` is the vector; ``output`` differs from it in an all-to-all only. Where a collective has no blocks, the
    vector is one.
    """

    input: tuple[int, ...]
    output: tuple[int, ...]
    known_to_all: bool = True  # False: a rank knows only the lengths of what it sends and receives itself

    @property
    def equal_blocks(self) -> bool:
        """Whether all blocks have the same length."""
        return self.known_to_all and len(set(self.input)) <= 1


class CodecBlock(NamedTuple):
    """The unit that a codec encodes. The first begins with the chunk, and a segment has a whole number of them."""

    memory_bytes: int
    wire_bytes: int


@dataclass(frozen=True)
class CallLayout:
    """The sizes that the engine needs beside the instructions."""

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
    staging_bytes: int, segment_limit: int | None = None, codec_block: CodecBlock | None = None, tracks: int = 1,
) -> CallLayout:  # fmt: skip
    """Compute the layout of a call.

    ``codec_block`` is the unit that a codec encodes; ``tracks`` is the number of passes that run at the same time.
    """
    chunks = schedule.chunks
    table = slot_table(schedule, collective, lengths)
    longest = max(length for _, length in table) * element_bytes
    several_hosts = len(lowered.near) + 1 < schedule.size
    segment, passes = cut_into_segments(
        schedule, collective, lowered.most_sent, longest, staging_bytes, several_hosts, segment_limit, codec_block,
        tracks, lengths.known_to_all,
    )  # fmt: skip
    where = (rank, schedule.size, chunks, schedule.root or 0)
    first = {
        INPUT: table[held.start][0] if (held := collective.held_before(*where)) else 0,
        OUTPUT: table[held.start][0] if (held := collective.held_after(*where)) else 0,
    }

    def extent(part: BufferPart) -> bytes:
        start, length = table[part.length_of]
        offset = part.slot * segment if part.buffer == WORK else (start - first[part.buffer]) * element_bytes
        return struct.pack("=QQ", offset, length * element_bytes)

    work_slots = 1 + max((part.slot for part in lowered.parts if part.buffer == WORK), default=-1)
    return CallLayout(b"".join(map(extent, lowered.parts)), segment, passes, work_slots * segment)


def cut_into_segments(
    schedule: Schedule, collective: Collective, most_sent: int, longest: int, staging_bytes: int,
    several_hosts: bool, segment_limit: int | None = None, codec_block: CodecBlock | None = None, tracks: int = 1,
    known_to_all: bool = True,
) -> tuple[int, int]:  # fmt: skip
    """Return the bytes of a segment, and the number of segments, of chunks of at most ``longest`` bytes.

    ``most_sent`` is the number of chunks that the busiest rank sends.
    """
    room = staging_bytes // (2 * most_sent) - PADDING
    if codec_block is not None:
        room = room // codec_block.wire_bytes * codec_block.memory_bytes
    limit = segment_limit or _longest_segment(collective, several_hosts)
    if known_to_all:  # otherwise ranks know different lengths
        limit = _shared_by_tracks(limit, longest, tracks)
    return _segments(schedule, longest, min(room, limit), known_to_all, codec_block)


def count_passes(
    collective: Collective, longest: int, most_sent: int, staging_bytes: int, several_hosts: bool, tracks: int = 1
) -> int:
    """Return the number of segments of a call without a codec, whose lengths all ranks know."""
    limit = _shared_by_tracks(_longest_segment(collective, several_hosts), longest, tracks)
    room = max(LINE, min(staging_bytes // (2 * most_sent) - PADDING, limit) // LINE * LINE)
    return max(1, -(-longest // room))


def _shared_by_tracks(limit: int, longest: int, tracks: int) -> int:
    return limit if tracks == 1 else min(limit, max(SHORTEST_FAR_SEGMENT, -(-longest // tracks)))


def _longest_segment(collective: Collective, several_hosts: bool) -> int:
    if several_hosts:
        return LONGEST_FAR_SEGMENT
    if collective.reduces:
        return LONGEST_SEGMENT
    return LONGEST_MOVED_SEGMENT if collective.rooted else LONGEST_EXCHANGED_SEGMENT


def _segments(
    schedule: Schedule, longest: int, room: int, known_to_all: bool, codec_block: CodecBlock | None
) -> tuple[int, int]:
    """Return the bytes of a segment, and the number of segments."""
    unit = codec_block.memory_bytes if codec_block is not None else LINE if room >= LINE else SMALLEST_SEGMENT
    most = room // unit * unit
    if most <= 0:
        raise UsageError(messages.STAGING_TOO_SMALL(algorithm=schedule.label))
    passes = max(1, -(-longest // most))
    if not known_to_all:
        return most, passes  # ranks know different lengths, but must cut at the same offsets
    return max(unit, -(-longest // (passes * unit)) * unit), passes
