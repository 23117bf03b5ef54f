"""The instructions of the engine, as the compiler works with them (engine/include/unisono/program.hpp has the bytes).

*Buffer part*: the part of a buffer that holds a chunk. The buffers are the rank's ``input`` and ``output`` (the same
where the collective works in place) and ``work``, internal memory with one segment per chunk.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

INPUT: Final = "input"
OUTPUT: Final = "output"
WORK: Final = "work"
BUFFERS = (INPUT, OUTPUT, WORK)

SEND: Final = "send"
RECEIVE: Final = "receive"
REDUCE: Final = "reduce"
COPY: Final = "copy"
COMBINE: Final = "combine"
KINDS = (SEND, RECEIVE, REDUCE, COPY, COMBINE)

NO_CHANNEL = 0xFFFF
NO_PART = 0xFFFFFFFF
MOST_CHUNKS = 0xFFFF  # in one message


class BufferPart(NamedTuple):
    """The location of a chunk; ``length_of`` is a slot of the same length."""

    buffer: str
    slot: int
    length_of: int

    def __str__(self) -> str:
        return f"{self.buffer} {self.slot}"


class Channel(NamedTuple):
    """The other end of a channel: a peer, or all near ranks (``to_all``; for a reader, ``peer`` is the writer)."""

    peer: int
    to_all: bool = False

    def __str__(self) -> str:
        return f"{self.peer}*" if self.to_all else str(self.peer)


class Operand(NamedTuple):
    """The operands for one chunk; ``left`` is always a part of the right length."""

    left: BufferPart
    right: BufferPart | None = None
    out: BufferPart | None = None
    final: bool = False  # this rank does not read ``out`` again in the same pass


class Instruction(NamedTuple):
    """One instruction; ``Kind`` in program.hpp defines what each kind does."""

    kind: str
    step: int
    operands: tuple[Operand, ...]
    sources: tuple[Channel, ...] = ()
    to: Channel | None = None
    # Where several ops were merged: the step of the send, and those of the receives after the first.
    sent_step: int | None = None
    later_steps: tuple[int, ...] = ()

    def with_(self, **changes: object) -> Instruction:
        """Return the same instruction with changes."""
        return self._replace(**changes)  # type: ignore[arg-type]

    def __str__(self) -> str:
        pieces = []
        for operand in self.operands:
            reads = [] if self.kind == RECEIVE else [str(operand.left)]
            reads += [str(operand.right)] if operand.right else []
            writes = f" -> {operand.out}" if operand.out else ""
            pieces.append(" + ".join(reads) + writes)
        sources = "".join(f" from {source}" for source in self.sources)
        to = f" to {self.to}" if self.to else ""
        return (
            f"{self.step:>3} {self.kind:<8}{sources}{to}: {'; '.join(piece.strip() for piece in pieces) or 'nothing'}"
        )


@dataclass(frozen=True)
class Lowered:
    """The instructions of one rank, for any lengths, type and reduction."""

    instructions: tuple[Instruction, ...]
    results: tuple[BufferPart, ...]
    silent_receivers: tuple[int, ...]  # peers that are sent to and that nothing is received from
    largest_message: int  # chunks, of any rank
    most_sent: int  # chunks in all, by any rank; on several hosts, those for all near ranks count once
    near: tuple[int, ...]  # the other ranks of this host, which read the channel to all
    parts: tuple[BufferPart, ...] = field(default=())
    rounded_last: tuple[
        BufferPart, ...
    ] = ()  # results that a codec rounds once more, so that all ranks have the same

    def receivers(self, instruction: Instruction) -> tuple[int, ...]:
        """Return the ranks to which an instruction sends."""
        if instruction.to is None:
            return ()
        return self.near if instruction.to.to_all else (instruction.to.peer,)

    @property
    def text(self) -> str:
        """The instructions in words, one per line."""
        return "".join(f"{instruction}\n" for instruction in self.instructions)

    def packed(self) -> dict[str, Any]:
        """Return the tables in the format of the engine."""
        index = {part: number for number, part in enumerate(self.parts)}
        channels: list[Channel] = []
        operands = bytearray()
        instructions = bytearray()
        count = 0

        def number(part: BufferPart | None) -> int:
            return NO_PART if part is None else index[part]

        for instruction in self.instructions:
            first_source = len(channels)
            channels += instruction.sources
            to = NO_CHANNEL
            if instruction.to is not None:
                to = len(channels)
                channels.append(instruction.to)
            instructions += struct.pack(
                "=BBHIHHI", KINDS.index(instruction.kind), len(instruction.sources), len(instruction.operands), count,
                first_source, to, instruction.step,
            )  # fmt: skip
            for operand in instruction.operands:
                parts = (operand.left, operand.right, operand.out)
                operands += struct.pack("=IIII", *map(number, parts), operand.final)
            count += len(instruction.operands)
        return {
            "instructions": bytes(instructions),
            "operands": bytes(operands),
            "parts": b"".join(struct.pack("=I", BUFFERS.index(part.buffer)) for part in self.parts),
            "channels": b"".join(struct.pack("=II", channel.peer, channel.to_all) for channel in channels),
            "results": [index[part] for part in self.results],
            "rounded_last": [index[part] for part in self.rounded_last],
            "silent_receivers": list(self.silent_receivers),
            "largest_message": self.largest_message,
        }
