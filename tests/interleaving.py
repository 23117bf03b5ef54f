"""A second, independent way to run a schedule on numbers: ranks take turns at random, op by op, on flat memory.

It shares only the programs with ``unisono.schedule.network``. Every rank has one array in which its slots are
adjacent, each as long as its chunk (a scratch slot as long as the longest), as an engine would lay them out:
writing more than the slot holds is an error here, although the player would not notice.
"""

from __future__ import annotations

import random

import numpy as np

from unisono import Schedule
from unisono.schedule import partition


class Stuck(Exception):
    """No rank can continue."""


class Overrun(Exception):
    """A write exceeds its slot."""


class FlatMemory:
    """The slots of one rank in one array."""

    def __init__(self, lengths: list[int], chunks_of_scratch: range, dtype) -> None:
        ends = np.cumsum(lengths)
        self.places = [slice(end - length, end) for end, length in zip(ends, lengths, strict=True)]
        self.scratch = chunks_of_scratch
        self.filled = dict.fromkeys(chunks_of_scratch, 0)  # the used length of a scratch slot
        self.values = np.zeros(sum(lengths), dtype)

    def read(self, slot: int) -> np.ndarray:
        """Return a copy of the contents of a slot."""
        values = self.values[self.places[slot]]
        return values[: self.filled[slot]].copy() if slot in self.scratch else values.copy()

    def write(self, slot: int, values: np.ndarray) -> None:
        """Overwrite a slot."""
        place = self.places[slot]
        room = place.stop - place.start
        if len(values) > room or (slot not in self.scratch and len(values) != room):
            raise Overrun(f"slot {slot} has room for {room}, and {len(values)} are written")
        if slot in self.scratch:
            self.filled[slot] = len(values)
        self.values[place.start : place.start + len(values)] = values


def lay_out(schedule: Schedule, vector: int, dtype) -> list[FlatMemory]:
    """Return the memory of every rank for a vector of this length."""
    in_blocks = schedule.collective in ("scatter", "gather", "all_gather", "reduce_scatter", "all_to_all")
    blocks = schedule.size if in_blocks else 1
    row = [
        piece.stop - piece.start
        for block in partition(vector, blocks)
        for piece in partition(block.stop - block.start, schedule.chunks // blocks)
    ]
    per_rank = schedule.chunks // schedule.size
    memories = []
    for rank in range(schedule.size):
        lengths = list(row)
        if schedule.collective == "all_to_all":  # received blocks have the length of this rank's own block
            lengths += row[rank * per_rank : (rank + 1) * per_rank] * schedule.size
        scratch = range(len(lengths), schedule.slots)
        memories.append(FlatMemory(lengths + [max(row, default=0)] * len(scratch), scratch, dtype))
    return memories


def run_at_random(schedule: Schedule, memories: list[FlatMemory], depth: int, seed: int) -> None:
    """Run all programs, in place, in an order that the seed determines."""
    order = random.Random(seed)
    channels: dict[tuple[int, int], list] = {}
    todo = [[op for step in schedule.program(rank) for op in step] for rank in range(schedule.size)]
    unfinished = [rank for rank, ops in enumerate(todo) if ops]
    while unfinished:
        order.shuffle(unfinished)
        for rank in unfinished:
            if attempt(rank, todo[rank][0], memories[rank], channels, depth):
                todo[rank].pop(0)
                break
        else:
            raise Stuck(str({rank: str(todo[rank][0]) for rank in unfinished}))
        unfinished = [rank for rank in unfinished if todo[rank]]
    assert not any(channels.values()), "messages were left behind"


def attempt(rank: int, op, memory: FlatMemory, channels: dict, depth: int) -> bool:
    """Perform the op if it is possible now; return whether it was."""
    chunks = [op.chunks] if isinstance(op.chunks, int) else list(op.chunks)
    if op.kind == "send":
        channel = channels.setdefault((rank, op.other), [])
        if len(channel) >= depth:
            return False
        channel.append([memory.read(chunk) for chunk in chunks])
        return True
    if op.kind in ("copy", "combine"):
        arriving = [memory.read(chunk) for chunk in chunks]
        chunks = [op.other] if isinstance(op.other, int) else list(op.other)
    else:
        channel = channels.get((op.other, rank))
        if not channel:
            return False
        arriving = channel.pop(0)
    for chunk, values in zip(chunks, arriving, strict=True):
        memory.write(chunk, memory.read(chunk) + values if op.kind in ("recv_reduce", "combine") else values)
    return True
