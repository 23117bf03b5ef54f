"""Computes the bytes that a rank sends in a call from its program and the lengths of its chunks."""

from __future__ import annotations

from collections.abc import Callable

from unisono.collectives import Collective
from unisono.compiler.call_layout import Lengths, slot_table
from unisono.compiler.instructions import Lowered
from unisono.schedule import Schedule


def sent_bytes(
    lowered: Lowered, schedule: Schedule, collective: Collective, lengths: Lengths, bytes_of: Callable[[int], int]
) -> int:
    """Return the bytes of all messages of the rank; a message to several ranks counts once for each.

    ``bytes_of(n)``: the bytes of n elements of a chunk on the wire.
    """
    table = slot_table(schedule, collective, lengths)
    total = 0
    for instruction in lowered.instructions:
        if instruction.to is not None:
            readers = schedule.size - 1 if instruction.to.to_all else 1
            total += readers * sum(bytes_of(table[operand.left.length_of][1]) for operand in instruction.operands)
    return total
