"""Finds the chunk that each slot holds, and so its length.

Where input and output share a row, slot c only ever holds chunk c (the verifier ensures it). A scratch slot holds the
chunk that was last written to it; to find it, the programs are executed once with chunk numbers instead of data,
unless there is only one chunk.
"""

from __future__ import annotations

from typing import Any

from unisono.collectives import Collective
from unisono.schedule import Chunks, Op, Schedule
from unisono.schedule.network import run
from unisono.schedule.ops import COMBINE, COPY, SEND, count, listed

Contents = list[
    tuple[int, ...]
]  # of each receive or local op of a rank, in order: which slots its chunks are as long as


class _ChunkNumbers:
    """A memory whose slots hold the number of a slot that is as long as they are."""

    def __init__(self, schedule: Schedule, collective: Collective) -> None:
        self.fixed = collective.slots(schedule.chunks)[-1].stop
        self.separate = not collective.in_place
        self.per_rank = max(1, schedule.chunks // schedule.size)
        self.rows = [list(range(schedule.slots)) for _ in range(schedule.size)]
        self.contents: list[Contents] = [[] for _ in range(schedule.size)]

    def read(self, rank: int, chunks: Chunks) -> Any:
        return [self.rows[rank][chunk] for chunk in listed(chunks)]

    def write(self, rank: int, op: Op, sent: Chunks, payload: Any) -> None:
        target = listed(_written(op))
        row = self.rows[rank]
        found = []
        for slot, length_of in zip(target, payload, strict=True):
            if slot < self.fixed:
                length_of = slot
            elif self.separate:
                length_of %= self.per_rank  # blocks on their way are equally long: the first one will do
            row[slot] = length_of
            found.append(length_of)
        self.contents[rank].append(tuple(found))


def contents_of(schedule: Schedule, collective: Collective, rank: int) -> Contents | None:
    """Return the chunks of one rank's receives and local ops; None where every slot has a fixed length."""
    if schedule.slots == collective.slots(schedule.chunks)[-1].stop or not collective.carries_data:
        return None
    if schedule.chunks == 1 and collective.in_place:  # a slot can hold nothing but the only chunk
        received = (op for step in schedule.program(rank) for op in step if op.kind != SEND)
        return [(0,) * count(_written(op)) for op in received]
    memory = _ChunkNumbers(schedule, collective)
    run(schedule, memory)
    return memory.contents[rank]


def _written(op: Op) -> Chunks:
    """Return the slots that a receive or a local op writes."""
    return op.other if op.kind in (COPY, COMBINE) else op.chunks
