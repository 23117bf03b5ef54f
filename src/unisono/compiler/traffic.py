"""Computes the bytes that a rank sends in a call from its program, its hosts and the lengths of its chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from unisono.collectives import Collective
from unisono.compiler.call_layout import Lengths, slot_table
from unisono.compiler.instructions import Lowered
from unisono.schedule import Schedule


class SentBytes(NamedTuple):
    """The bytes of messages to ranks of the same host, and to ranks of other hosts."""

    near: int
    far: int


def sent_bytes(
    lowered: Lowered, schedule: Schedule, collective: Collective, lengths: Lengths, bytes_of: Callable[[int], int]
) -> SentBytes:
    """Return the bytes of all messages of the rank; a message to several ranks counts once for each.

    ``bytes_of(n)``: the bytes of n elements of a chunk on the wire.
    """
    table = slot_table(schedule, collective, lengths)
    near = far = 0
    for instruction in lowered.instructions:
        if receivers := lowered.receivers(instruction):
            message = sum(bytes_of(table[operand.left.length_of][1]) for operand in instruction.operands)
            reached = sum(peer in lowered.near for peer in receivers)
            near += reached * message
            far += (len(receivers) - reached) * message
    return SentBytes(near, far)
