"""The layout of a call on GPUs: offsets and lengths of all places, the segment, the passes and the thread blocks.

The segment, and with it the number of passes, is the same on all ranks, so it follows from the rank with the most
scratch slots. Programs without scratch memory run in one pass.
"""

from __future__ import annotations

from typing import NamedTuple

from unisono.codecs import Codec
from unisono.codecs.formats import BLOCK
from unisono.compiler import Lengths
from unisono.compiler.call_layout import slot_table
from unisono.errors import UsageError
from unisono.gpu import messages, program
from unisono.gpu.lowering import LoweredForDevice
from unisono.gpu.places import Place
from unisono.gpu.program import DeviceProgram, Move, Ref, Step
from unisono.schedule import partition

SCRATCH_BYTES = 32 * 1024 * 1024  # of each rank
TILE = 8192  # bytes: what a thread block moves at a time; tile t of every part belongs to block t modulo blocks
LINE = 128  # bytes: scratch slots begin at multiples of it, and segments are multiples of it
VECTOR = 16  # bytes of the longest load
VECTOR_ROOM = LINE  # behind every plain slot, as its content begins up to 15 bytes after the slot


class Scratch(NamedTuple):
    """The scratch memory of all ranks."""

    segment_bytes: int
    passes: int
    plain_stride: int
    encoded_stride: int
    bytes: int  # of the rank that needs most


class Layout:
    """The places of one call, as one rank sees them."""

    def __init__(
        self, lowered: LoweredForDevice, rank: int, lengths: Lengths, element_bytes: int, codec: Codec | None,
        scratch_bytes: int = SCRATCH_BYTES,
    ) -> None:  # fmt: skip
        self.lowered, self.rank, self.lengths, self.element_bytes = lowered, rank, lengths, element_bytes
        schedule, collective = lowered.schedule, lowered.collective
        self.table = slot_table(schedule, collective, lengths)
        self.longest = max((length for _, length in self.table), default=0) * element_bytes
        self.scratch = scratch_of(lowered, self.longest, codec, scratch_bytes)
        self.firsts = [self._first(of) for of in range(schedule.size)]
        self.per_rank = max(1, schedule.chunks // schedule.size)
        self.refs: dict[Place, Ref] = {}

    def program(self) -> DeviceProgram:
        """Return the program of this rank."""
        lowered, ref = self.lowered, self._kept_ref
        steps = tuple(
            Step(
                tuple(step.waits),
                tuple(
                    Move(
                        tuple(map(ref, move.sources)), tuple(map(ref, move.destinations)),
                        self.table[move.length_of][1] * self.element_bytes, move.flags,
                    )
                    for move in step.moves
                ),
                tuple(step.signals),
            )
            for step in lowered.programs[self.rank]
        )  # fmt: skip
        return DeviceProgram(
            lowered.schedule.size, self.scratch.passes, self.scratch.segment_bytes, lowered.contacts[self.rank], steps
        )

    def blocks(self, most: int) -> int:
        """Return the number of thread blocks, the same on all ranks: no more than the longest move has tiles."""
        if not self.lengths.known_to_all:
            return most
        return max(1, min(most, -(-min(self.longest, self.scratch.segment_bytes) // TILE)))

    def biases(self) -> tuple[list[int], list[int]]:
        """Return what is added to the addresses of input and output that this rank posts to each peer.

        Where the ranks know different lengths, a peer cannot compute the offset of its block: it gets its address.
        """
        size = self.lowered.schedule.size
        if self.lengths.known_to_all:
            return [0] * size, [0] * size
        chunks = self.lowered.schedule.chunks
        starts = [self.table[peer * self.per_rank][0] * self.element_bytes for peer in range(size)]
        ends = [self.table[chunks + peer * self.per_rank][0] * self.element_bytes for peer in range(size)]
        return starts, ends

    def _first(self, rank: int) -> tuple[int, int]:
        """Return where the input and the output of a rank begin in the vector, in elements."""
        schedule, collective = self.lowered.schedule, self.lowered.collective
        where = (rank, schedule.size, schedule.chunks, schedule.root or 0)
        before, after = collective.held_before(*where), collective.held_after(*where)
        return (self.table[before.start][0] if before else 0, self.table[after.start][0] if after else 0)

    def _kept_ref(self, place: Place) -> Ref:
        found = self.refs.get(place)
        if found is None:
            found = self.refs[place] = self._ref(place)
        return found

    def _ref(self, place: Place) -> Ref:
        rank, buffer, slot, length_of, encoded = place
        start = self.table[length_of][0]
        if buffer == program.SCRATCH:
            plain = self.scratch.plain_stride
            if encoded:
                offset = self.lowered.plain_slots[rank] * plain + slot * self.scratch.encoded_stride
            else:
                # Aligned as in the vector, so that 16 bytes can be moved at a time between the two. Later contents of
                # the slot begin at the same address: tile t must always be the same bytes.
                start = self.table[self.lowered.first_content[rank, slot]][0]
                offset = slot * plain + start * self.element_bytes % VECTOR
            return Ref(rank, buffer, offset, encoded)
        if self.lengths.known_to_all or rank == self.rank:
            return Ref(rank, buffer, (start - self.firsts[rank][buffer]) * self.element_bytes)
        return Ref(rank, buffer, self._offset_in_block(rank, buffer, slot) * self.element_bytes)

    def _offset_in_block(self, peer: int, buffer: int, slot: int) -> int:
        """Return the offset of a chunk in the block that this rank exchanges with a peer, in elements."""
        chunks = self.lowered.schedule.chunks
        block, piece = divmod(slot - (chunks if buffer == program.OUTPUT else 0), self.per_rank)
        if block != self.rank:
            raise UsageError(messages.UNKNOWN_LENGTH(algorithm=self.lowered.schedule.label))
        length = self.lengths.input[peer] if buffer == program.OUTPUT else self.lengths.output[peer]
        return int(partition(length, self.per_rank)[piece].start)


def pair_bytes(lengths: Lengths, rank: int, element_bytes: int) -> list[tuple[int, int]] | None:
    """Return for each peer the bytes from the lower to the higher rank and back; None if all ranks know all."""
    if lengths.known_to_all:
        return None
    return [
        (sent * element_bytes, received * element_bytes)
        if rank < peer
        else (received * element_bytes, sent * element_bytes)
        for peer, (sent, received) in enumerate(zip(lengths.input, lengths.output, strict=True))
    ]


def scratch_of(lowered: LoweredForDevice, longest: int, codec: Codec | None, room: int) -> Scratch:
    """Cut chunks of at most ``longest`` bytes so that the slots of every rank fit into ``room`` bytes."""
    slots = list(zip(lowered.plain_slots, lowered.encoded_slots, strict=True))
    encoded_line = LINE if codec is None else codec.wire_bytes(BLOCK)  # LINE bytes of numbers are a codec block

    whole = _whole_lines(max(longest, 1))
    most = whole
    if any(map(any, slots)):
        # A slot of s lines takes at most s + 1 lines, or s encoded lines rounded up.
        most = min(
            whole,
            *(
                (room - (plain + encoded) * LINE) // (plain * LINE + encoded * encoded_line) * LINE
                for plain, encoded in slots
                if plain or encoded
            ),
        )
    if most <= 0:
        raise UsageError(messages.SCRATCH_TOO_SMALL(algorithm=lowered.schedule.label))
    passes = -(-whole // most)
    segment = _whole_lines(-(-whole // passes))
    plain_stride = segment + VECTOR_ROOM
    encoded_stride = _whole_lines(segment // LINE * encoded_line)
    used = max(plain * plain_stride + encoded * encoded_stride for plain, encoded in slots)
    return Scratch(segment, passes, plain_stride, encoded_stride, used)


def _whole_lines(count: int) -> int:
    return -(-count // LINE) * LINE
