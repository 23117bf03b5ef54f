"""Assigns a part of a buffer to each chunk while a rank's program runs.

A slot first holds the rank's input. Data that is written to a slot goes to the output if the slot belongs to the
result, else to work memory: so inputs are unchanged, and only buffers that the user passed as outputs are written.

Where a codec rounds the data that is sent, the sender continues with the rounded numbers. They replace the original
ones, except in an input, which is never changed: if the slot belongs to the result they go to the output; if it does
not, the rank no longer needs them (else they would be counted twice).
"""

from __future__ import annotations

from collections.abc import Iterator

from unisono.collectives import Collective
from unisono.compiler.instructions import (
    COMBINE,
    COPY,
    INPUT,
    OUTPUT,
    RECEIVE,
    REDUCE,
    SEND,
    WORK,
    BufferPart,
    Channel,
    Instruction,
    Operand,
)
from unisono.compiler.lengths import Contents
from unisono.compiler.routes import Routes, Sending
from unisono.schedule import Chunks, Schedule, ops
from unisono.schedule.ops import listed


class BufferAssignment:
    """Follows one rank's program and records the part of each chunk."""

    def __init__(
        self, schedule: Schedule, collective: Collective, rank: int, contents: Contents | None, rounds: bool = False
    ) -> None:
        self.carries_data = collective.carries_data
        self.rounds = rounds
        self.rounded: set[int] = set()  # slots whose content was sent or received
        where = (rank, schedule.size, schedule.chunks, schedule.root or 0)
        self.results = collective.held_after(*where)
        self.contents = None if contents is None else iter(contents)
        # One array is both: slots of the result already lie in the output.
        in_place = collective.single_array
        self.holds = {
            slot: BufferPart(OUTPUT if in_place and slot in self.results else INPUT, slot, slot)
            for slot in collective.held_before(*where)
        }

    def target(self, slot: int, length_of: int) -> BufferPart:
        """Return the part to which data for a slot is written."""
        return BufferPart(OUTPUT if slot in self.results else WORK, slot, length_of)

    def instructions(self, routes: Routes, rank: int) -> Iterator[Instruction]:
        """Yield the program, one instruction for each send, receive and local op."""
        received: dict[int, int] = {}
        for move in routes.linear(rank):
            if isinstance(move, Sending):
                to = Channel(rank, to_all=True) if len(move.to) > 1 else Channel(move.to[0])
                operands = tuple(self._sent(slot) for slot in self._listed(move.chunks))
                yield Instruction(SEND, move.step, operands, to=to)
                continue
            step, op = move
            if op.is_local:
                yield self._local(step, op)
                continue
            peer = int(op.other)  # type: ignore[arg-type]
            number = received.get(peer, 0)
            received[peer] = number + 1
            source = Channel(peer, to_all=routes.goes_to_all(peer, rank, number))
            yield self._receive(step, op, source)
        yield from self._own_part()

    def unrounded_results(self) -> list[int]:
        """Return the slots of the result whose content has not been rounded."""
        return [slot for slot in self.results if slot not in self.rounded]

    def _sent(self, slot: int) -> Operand:
        part = self.holds[slot]
        kept = None
        if self.rounds and (part.buffer != INPUT or slot in self.results):
            kept = self.holds[slot] = self.target(slot, part.length_of)
        self.rounded.add(slot)
        return Operand(part, out=kept)

    def _receive(self, step: int, op: ops.Op, source: Channel) -> Instruction:
        slots = self._listed(op.chunks)
        reduces = op.kind == ops.RECV_REDUCE and self.carries_data
        operands = []
        for slot, length_of in zip(slots, self._lengths(slots), strict=True):
            out = self.target(slot, length_of)
            operands.append(Operand(self.holds[slot] if reduces else out, out=out))
            self.holds[slot] = out
            (self.rounded.discard if reduces else self.rounded.add)(slot)
        return Instruction(REDUCE if reduces else RECEIVE, step, tuple(operands), sources=(source,))

    def _local(self, step: int, op: ops.Op) -> Instruction:
        sources, targets = self._listed(op.chunks), self._listed(op.other)
        operands = []
        for source, target, length_of in zip(sources, targets, self._lengths(targets), strict=True):
            out = self.target(target, length_of)
            if op.kind == ops.COMBINE:
                operands.append(Operand(self.holds[target], right=self.holds[source], out=out))
            else:
                operands.append(Operand(self.holds[source], out=out))
            self.holds[target] = out
            copied = op.kind == ops.COPY and source in self.rounded
            (self.rounded.add if copied else self.rounded.discard)(target)
        return Instruction(COMBINE if op.kind == ops.COMBINE else COPY, step, tuple(operands))

    def _own_part(self) -> Iterator[Instruction]:
        """Copy the slots of the result that still lie in the input."""
        left = [slot for slot in self.results if self.holds[slot].buffer == INPUT] if self.carries_data else []
        if left:
            operands = tuple(Operand(self.holds[slot], out=self.target(slot, slot)) for slot in left)
            yield Instruction(COPY, 0, operands)

    def _listed(self, chunks: Chunks) -> list[int]:
        return list(listed(chunks)) if self.carries_data else []  # a barrier's messages are empty

    def _lengths(self, slots: list[int]) -> tuple[int, ...]:
        return next(self.contents) if self.contents is not None else tuple(slots)
