"""Refuses steps whose ops conflict with each other.

The ops of a step happen together, so a step must mean the same in whatever order they are done:

* a chunk is written at most once, unless by several recv_reduce, which add in the order written;
* a copy or combine reads no chunk that an op of the step writes.

A send may send a chunk that the step overwrites: it reads the value from before the step.
"""

from __future__ import annotations

from collections.abc import Sequence

from unisono.errors import HazardError
from unisono.schedule import messages
from unisono.schedule.ops import RECV_REDUCE, SEND, Op, listed


def check_hazards(step: Sequence[Op]) -> None:
    """Raise HazardError if the step has no single meaning."""
    written: dict[int, int] = {}  # by which op of the step
    local = []
    for position, op in enumerate(step):
        kind, chunks, other = op
        if kind == SEND:
            continue
        if op.is_local:
            local.append(op)
            chunks = other
        for chunk in (chunks,) if type(chunks) is int else listed(chunks):
            before = written.setdefault(chunk, position)
            if before != position and not (step[before].kind == kind == RECV_REDUCE):
                raise HazardError(
                    messages.WRITTEN_TWICE(chunk=chunk), op=op, chunk=chunk,
                    found=messages.TWO_OPS(first=step[before], second=op), hint=messages.USE_TWO_STEPS(),
                )  # fmt: skip
    for op in local:
        for chunk in listed(op.chunks):
            if chunk in written:
                raise HazardError(
                    messages.READ_AND_WRITTEN(chunk=chunk), op=op, chunk=chunk,
                    found=messages.TWO_OPS(first=op, second=step[written[chunk]]), hint=messages.USE_TWO_STEPS(),
                )  # fmt: skip
