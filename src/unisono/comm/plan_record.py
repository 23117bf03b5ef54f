"""The record of a plan: what it was made of, from which a trace describes the calls that used it."""

from __future__ import annotations

import struct
from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from unisono.comm.arrays import ELEMENT_BYTES
from unisono.comm.call_request import CallRequest
from unisono.comm.programs import Compiled
from unisono.compiler import CallLayout, Instruction
from unisono.schedule import Schedule
from unisono.schedule.ops import SEND, format_chunks
from unisono.tracing.facts import InstructionFacts, PlanFacts

MOST_CHUNKS_SHOWN = 100


@dataclass(frozen=True)
class PlanRecord:
    """What a plan was made of."""

    made: Compiled
    layout: CallLayout
    request: CallRequest
    text: str

    def facts(self, rank: int) -> PlanFacts:
        """Return the description of calls with this plan on one rank."""
        request, schedule = self.request, self.made.schedule
        element, codec = ELEMENT_BYTES[request.dtype], request.codec
        count = sum(request.lengths.input)
        return PlanFacts(
            text=self.text, collective=self.made.collective.name, algorithm=self.made.name,
            schedule=self.made.digest[:16], dtype=request.dtype, count=count, nbytes=count * element,
            passes=self.layout.passes, segment_bytes=self.layout.segment_bytes,
            instructions=tuple(self._instructions(rank, schedule)), op=request.op, root=request.root,
            codec=None if codec is None else str(codec), skips_empty=not request.lengths.known_to_all,
            wire_bytes=int if codec is None else lambda nbytes: codec.wire_bytes(nbytes // element),
        )  # fmt: skip

    def _instructions(self, rank: int, schedule: Schedule) -> list[InstructionFacts]:
        lowered = self.made.lowered
        extents = struct.iter_unpack("=QQ", self.layout.extents)
        length = {place: nbytes for place, (_, nbytes) in zip(lowered.parts, extents, strict=True)}
        messages = _Messages(schedule, rank)
        return [
            InstructionFacts(
                kind=one.kind, step=one.step,
                sources=tuple(source.peer for source in one.sources),
                to=lowered.receivers(one),
                chunks=messages.chunks_of(one, lowered.receivers(one)),
                chunk_bytes=tuple(length[operand.left] for operand in one.operands),
            )
            for one in lowered.instructions
        ]  # fmt: skip


class _Peer(NamedTuple):
    """The messages to or from a peer."""

    sends: bool
    rank: int


class _Messages:
    """The chunks of each message of a rank, as the author of the program wrote them, in the order of each peer."""

    def __init__(self, schedule: Schedule, rank: int) -> None:
        self.chunks: dict[_Peer, list[str]] = defaultdict(list)
        for step in schedule.program(rank):
            for op in step:
                if not op.is_local:
                    peer = _Peer(op.kind == SEND, int(op.other))  # type: ignore[arg-type]
                    self.chunks[peer].append(format_chunks(op.chunks, MOST_CHUNKS_SHOWN))
        self.taken: dict[_Peer, int] = defaultdict(int)

    def chunks_of(self, instruction: Instruction, receivers: tuple[int, ...]) -> str:
        """Return the chunks of the next instruction: those that it receives, or sends, or moves inside."""
        found = None
        peers = [_Peer(False, source.peer) for source in instruction.sources]
        for peer in (*peers, *(_Peer(True, to) for to in receivers)):
            at = self.taken[peer]
            self.taken[peer] += 1
            found = found or self.chunks[peer][at]
        return found or format_chunks([operand.left.length_of for operand in instruction.operands], MOST_CHUNKS_SHOWN)
