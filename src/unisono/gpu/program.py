"""Device programs: the program of one rank on its GPU, as data. The kernel and the stream operations run it.

*Move*: ``v = source0 (op) source1 (op) ...``, element by element, stored to every destination. *Signal*: raises a
counter in the memory of a peer; *wait*: until such a counter has reached a value. *Step*: waits, then moves, then
signals. A move comes after all moves before it in its step, unless it is *apart*: then none of them since the last
move that is not apart touches what it writes, or writes what it touches.

A program runs once for each segment (*pass*). It is packed into little-endian 32-bit words; a pair of words, low one
first, is a 64-bit number::

    header   words in all, steps, passes, flags (0), segment bytes (2), contacts (2: bit r is rank r)
    steps    waits, moves, signals, words of this step with this header; then the waits, the moves, the signals
      wait, signal   peer << 16 | number of signals of that pair in this pass, this one included
      move           sources | destinations << 8 | flags << 16, 0, length in bytes of the chunk (2), 0, 0;
                     then the refs: sources, then destinations
        ref          rank | buffer << 16 | flags << 24, 0, offset in bytes (2)
    trailer  for each rank: signals sent to it per pass, signals received from it per pass

In pass p a ref is at ``base(rank, buffer) + offset + p * segment``, in scratch memory without the last term. A move
has ``clamp(length - p * segment, 0, segment)`` bytes; the offset of an encoded ref does not depend on them.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

INPUT, OUTPUT, SCRATCH = 0, 1, 2  # buffers
ENCODED = 1  # flag of a ref: a codec has encoded the data
# Flags of a move. The sum is first rounded to the type of the elements, then by the codec, then it is divided.
REDUCE = 1  # several sources are combined
DIVIDE = 2  # the result is divided by the number of ranks
ROUND = 4  # plain destinations get what a receiver would decode; so they do where any destination is encoded
APART = 8  # independent of the moves before it: no barrier is needed

HEADER_WORDS, STEP_WORDS, MOVE_WORDS, REF_WORDS = 8, 4, 6, 4
MOST_COUNTED = 0xFFFF  # signals of a pair in a pass, and ranks


class Ref(NamedTuple):
    """A part of a buffer of a rank."""

    rank: int
    buffer: int
    offset: int
    encoded: bool = False


class Move(NamedTuple):
    """One move; ``length`` is that of the whole chunk, in bytes."""

    sources: tuple[Ref, ...]
    destinations: tuple[Ref, ...]
    length: int
    flags: int = 0


class Sync(NamedTuple):
    """A wait for, or a signal to, a peer; ``number`` counts the signals of the pair in a pass, this one included."""

    peer: int
    number: int


class Step(NamedTuple):
    """Waits, then moves, then signals."""

    waits: tuple[Sync, ...]
    moves: tuple[Move, ...]
    signals: tuple[Sync, ...]


class DeviceProgram(NamedTuple):
    """The program of one rank for a call of certain lengths."""

    size: int
    passes: int
    segment_bytes: int
    contacts: tuple[int, ...]  # the ranks with which this rank exchanges anything
    steps: tuple[Step, ...]

    def pack(self) -> bytes:
        """Return the program as words."""
        words = [0, len(self.steps), self.passes, 0]
        contacts = sum(1 << rank for rank in self.contacts)
        words += (*_pair(self.segment_bytes), *_pair(contacts))
        sent, received = [0] * self.size, [0] * self.size
        for step in self.steps:
            start = len(words)
            words += (len(step.waits), len(step.moves), len(step.signals), 0)
            for peer, count in step.waits:
                words.append(peer << 16 | count)
                received[peer] = count
            for move in step.moves:
                words += (
                    len(move.sources) | len(move.destinations) << 8 | move.flags << 16, 0,
                    move.length & 0xFFFFFFFF, move.length >> 32, 0, 0,
                )  # fmt: skip
                for rank, buffer, offset, encoded in (*move.sources, *move.destinations):
                    words += (rank | buffer << 16 | encoded << 24, 0, offset & 0xFFFFFFFF, offset >> 32)
            for peer, count in step.signals:
                words.append(peer << 16 | count)
                sent[peer] = count
            words[start + 3] = len(words) - start
        for counts in zip(sent, received, strict=True):
            words += counts
        words[0] = len(words)
        return struct.pack(f"<{len(words)}I", *words)


def unpack(packed: bytes, size: int) -> DeviceProgram:
    """Return the program of these words; the reverse of ``DeviceProgram.pack``."""
    words = struct.unpack(f"<{len(packed) // 4}I", packed)
    at = HEADER_WORDS
    steps = []
    for _ in range(words[1]):
        waits, moves, signals, length = words[at : at + STEP_WORDS]
        end = at + length
        at += STEP_WORDS
        waited = tuple(map(_sync, words[at : at + waits]))
        at += waits
        made = []
        for _ in range(moves):
            move, at = _move(words, at)
            made.append(move)
        steps.append(Step(waited, tuple(made), tuple(map(_sync, words[at : at + signals]))))
        at = end
    contacts = words[6] | words[7] << 32
    return DeviceProgram(
        size, words[2], words[4] | words[5] << 32, tuple(r for r in range(size) if contacts >> r & 1), tuple(steps)
    )


def _pair(number: int) -> tuple[int, int]:
    return number & 0xFFFFFFFF, number >> 32


def _sync(word: int) -> Sync:
    return Sync(word >> 16, word & 0xFFFF)


def _move(words: tuple[int, ...], at: int) -> tuple[Move, int]:
    counts = words[at]
    length = words[at + 2] | words[at + 3] << 32
    at += MOVE_WORDS
    refs = []
    for _ in range((counts & 0xFF) + (counts >> 8 & 0xFF)):
        kind, offset = words[at], words[at + 2] | words[at + 3] << 32
        refs.append(Ref(kind & 0xFFFF, kind >> 16 & 0xFF, offset, bool(kind >> 24 & ENCODED)))
        at += REF_WORDS
    sources = counts & 0xFF
    return Move(tuple(refs[:sources]), tuple(refs[sources:]), length, counts >> 16), at
