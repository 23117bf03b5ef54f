"""Selects how each chunk of each message travels.

- *put*: the sender's move writes into the output of the receiver;
- *pull*: the receiver's move reads the memory of the sender;
- *staged*: the sender's move writes a slot of its scratch memory, which the receiver's move reads;
- *unused*: the receiver does not keep the chunk.

A put is the cheapest: the data are written once, and the signal that says so is the last one. It is possible where
no rank has touched that part of the receiver's output before, except the sender itself: then no permission is needed
beyond the entry of the receiver into the call. With a codec all messages are staged, encoded.
"""

from __future__ import annotations

from collections import defaultdict
from enum import Enum

from unisono.compiler.instructions import OUTPUT, RECEIVE, SEND, BufferPart, Instruction, Operand
from unisono.gpu.matching import Matched, Message


class Transport(Enum):
    """The way of one chunk from the sender to one receiver."""

    PUT = "put"
    PULL = "pull"
    STAGED = "staged"
    UNUSED = "unused"


Transports = dict[tuple[Message, int, int], Transport]  # by message, chunk of it, and receiver
Access = tuple[int, int]  # instruction and chunk


class Movers(Enum):
    """The ranks that move a chunk where the sender can put it: the receiver can pull it as well."""

    SENDERS = "senders"
    RECEIVERS = "receivers"
    BOTH = "both"  # of the two, the one that has moved less so far; chunks for several receivers are put


def transports_of(matched: Matched, encodes: bool, aliased: bool, movers: Movers) -> Transports:
    """Return the transport of every chunk.

    ``aliased``: the input of a rank may be the same memory as its output.
    """
    touched = [_accesses(program, aliased) for program in matched.programs]
    moved = [0] * len(matched.programs)  # chunks, by rank
    found: Transports = {}
    for sent in matched.sent:
        for message in sent.values():
            for receiver in message.receivers:
                instruction = matched.programs[receiver][message.taken[receiver]]
                for chunk, operand in enumerate(instruction.operands):
                    if instruction.kind == RECEIVE and instruction.to is None and operand.out is None:
                        transport = Transport.UNUSED
                    elif encodes:
                        transport = Transport.STAGED
                    elif movers is not Movers.RECEIVERS and _can_put(
                        matched, touched[receiver], message, chunk, receiver, aliased
                    ):
                        alone = movers is Movers.BOTH and len(message.receivers) == 1
                        pulls = alone and moved[receiver] < moved[message.sender]
                        transport = Transport.PULL if pulls else Transport.PUT
                    else:
                        transport = Transport.PULL
                    moved[receiver if transport is Transport.PULL else message.sender] += 1
                    found[message, chunk, receiver] = transport
    return found


def location(part: BufferPart, aliased: bool) -> tuple[str, int]:
    """Return the memory of a part, within its rank; chunk c of the input may be chunk c of the output."""
    return (part.buffer if part.buffer != "input" or not aliased else OUTPUT, part.slot)


def parts_touched(instruction: Instruction, operand: Operand) -> list[BufferPart]:
    """Return the parts that an instruction reads or writes; the left one of a receive only states a length."""
    parts = [operand.right, operand.out] + ([operand.left] if instruction.kind != RECEIVE else [])
    return [part for part in parts if part is not None]


def _accesses(program: tuple[Instruction, ...], aliased: bool) -> dict[tuple[str, int], list[Access]]:
    found: dict[tuple[str, int], list[Access]] = defaultdict(list)
    for index, instruction in enumerate(program):
        for chunk, operand in enumerate(instruction.operands):
            for part in parts_touched(instruction, operand):
                found[location(part, aliased)].append((index, chunk))
    return found


def _can_put(
    matched: Matched, touched: dict[tuple[str, int], list[Access]], message: Message, chunk: int, receiver: int,
    aliased: bool,
) -> bool:  # fmt: skip
    taken = message.taken[receiver]
    instruction = matched.programs[receiver][taken]
    out = instruction.operands[chunk].out
    if instruction.kind != RECEIVE or out is None or out.buffer != OUTPUT:
        return False
    for index, other_chunk in touched[location(out, aliased)]:
        if index >= taken:
            break
        earlier = matched.programs[receiver][index]
        if earlier.kind != SEND or earlier.operands[other_chunk].out is not None:
            return False
        given = matched.sent[receiver][index]  # the receiver sent this part: only the sender may have read it
        if given.receivers != (message.sender,):
            return False
        if (given.taken[message.sender], other_chunk) > (message.index, chunk):
            return False
    return True
