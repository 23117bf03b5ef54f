"""In which buffer each chunk lies while a rank's program runs.

What a slot holds first is the rank's input. What is written to a slot goes to the output where the slot belongs to
the result, else to work memory: so inputs stay as they were, and the only buffers written are those the user gave for
it.

Where a codec rounds what is sent, the sender goes on with the rounded numbers. They are put where the others were;
only an input stays as it was. If it belongs to the result they go to the output. If it does not, the rank has sent it
away for good (else it would be counted twice).
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
    Channel,
    Instruction,
    Operand,
    Place,
)
from unisono.compiler.lengths import Contents
from unisono.compiler.routes import Routes, Sending
from unisono.schedule import Chunks, Schedule, ops
from unisono.schedule.ops import listed


class Placing:
    """Follows one rank's program and notes where its chunks lie."""

    def __init__(
        self, schedule: Schedule, collective: Collective, rank: int, contents: Contents | None, rounds: bool = False
    ) -> None:
        self.carries_data = collective.carries_data
        self.rounds = rounds
        self.rounded: set[int] = set()  # slots whose content was sent, or has come from another rank
        where = (rank, schedule.size, schedule.chunks, schedule.root or 0)
        self.results = collective.held_after(*where)
        self.contents = None if contents is None else iter(contents)
        # One array is both: what is in the result already lies in the output.
        in_place = collective.single_array
        self.holds = {
            slot: Place(OUTPUT if in_place and slot in self.results else INPUT, slot, slot)
            for slot in collective.held_before(*where)
        }

    def target(self, slot: int, length_of: int) -> Place:
        """Return where something that is put into a slot goes."""
        return Place(OUTPUT if slot in self.results else WORK, slot, length_of)

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
            source = Channel(peer, to_all=routes.sent_by(peer)[rank][number])
            yield self._receive(step, op, source)
        yield from self._own_part()

    def unrounded_results(self) -> list[int]:
        """Return the slots of the result that hold what has not been rounded."""
        return [slot for slot in self.results if slot not in self.rounded]

    def _sent(self, slot: int) -> Operand:
        place = self.holds[slot]
        kept = None
        if self.rounds and (place.buffer != INPUT or slot in self.results):
            kept = self.holds[slot] = self.target(slot, place.length_of)
        self.rounded.add(slot)
        return Operand(place, out=kept)

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
        """Copy what belongs to the result and still lies in the input."""
        left = [slot for slot in self.results if self.holds[slot].buffer == INPUT] if self.carries_data else []
        if left:
            operands = tuple(Operand(self.holds[slot], out=self.target(slot, slot)) for slot in left)
            yield Instruction(COPY, 0, operands)

    def _listed(self, chunks: Chunks) -> list[int]:
        return list(listed(chunks)) if self.carries_data else []  # a barrier's messages are empty

    def _lengths(self, slots: list[int]) -> tuple[int, ...]:
        return next(self.contents) if self.contents is not None else tuple(slots)
