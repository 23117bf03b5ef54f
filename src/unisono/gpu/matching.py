"""Matches the messages of all ranks: message k that is sent through a channel is message k that is received."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from unisono.compiler.instructions import Instruction, Lowered


@dataclass(eq=False)
class Message:
    """One message: the instruction that sends it, and for each receiver the instruction that takes it."""

    sender: int
    index: int  # of the instruction in the program of the sender
    receivers: tuple[int, ...]
    taken: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Matched:
    """The compiled programs of all ranks, and their messages."""

    programs: tuple[tuple[Instruction, ...], ...]
    sent: tuple[dict[int, Message], ...]  # of each rank: by the index of the instruction
    received: tuple[dict[int, list[Message]], ...]  # likewise, in the order of its sources


def match(lowered: Sequence[Lowered]) -> Matched:
    """Return the messages of the compiled programs of all ranks."""
    queues: dict[tuple[int, int, bool], list[Message]] = defaultdict(list)  # by sender, receiver and channel
    sent: tuple[dict[int, Message], ...] = tuple({} for _ in lowered)
    for rank, program in enumerate(lowered):
        for index, instruction in enumerate(program.instructions):
            if instruction.to is None:
                continue
            message = Message(rank, index, program.receivers(instruction))
            sent[rank][index] = message
            for receiver in message.receivers:
                queues[rank, receiver, instruction.to.to_all].append(message)
    received: tuple[dict[int, list[Message]], ...] = tuple({} for _ in lowered)
    for rank, program in enumerate(lowered):
        for index, instruction in enumerate(program.instructions):
            for source in instruction.sources:
                message = queues[source.peer, rank, source.to_all].pop(0)
                message.taken[rank] = index
                received[rank].setdefault(index, []).append(message)
    return Matched(tuple(program.instructions for program in lowered), sent, received)
