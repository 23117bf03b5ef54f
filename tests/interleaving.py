"""A second, independent way to run a schedule on numbers: ranks take turns at random, op by op.

It shares no code with ``unisono.schedule.network`` but the programs; tests use it to check that one run speaks for
all interleavings, and that nothing hangs at the depth that was proved.
"""

from __future__ import annotations

import random

import numpy as np

from unisono import Schedule


class Stuck(Exception):
    """Nobody can go on."""


def run_at_random(schedule: Schedule, rows: list[list[np.ndarray | None]], depth: int, seed: int) -> None:
    """Run all programs on ``rows[rank][slot]``, in place, in an order that the seed decides."""
    order = random.Random(seed)
    channels: dict[tuple[int, int], list] = {}
    todo = [[op for step in schedule.program(rank) for op in step] for rank in range(schedule.size)]
    unfinished = [rank for rank, ops in enumerate(todo) if ops]
    while unfinished:
        order.shuffle(unfinished)
        for rank in unfinished:
            if attempt(rank, todo[rank][0], rows[rank], channels, depth):
                todo[rank].pop(0)
                break
        else:
            raise Stuck(str({rank: str(todo[rank][0]) for rank in unfinished}))
        unfinished = [rank for rank in unfinished if todo[rank]]
    assert not any(channels.values()), "messages were left behind"


def attempt(rank: int, op, row: list, channels: dict, depth: int) -> bool:
    """Do the op if that is possible now."""
    chunks = [op.chunks] if isinstance(op.chunks, int) else list(op.chunks)
    if op.kind == "send":
        channel = channels.setdefault((rank, op.other), [])
        if len(channel) >= depth:
            return False
        channel.append([row[chunk].copy() for chunk in chunks])
        return True
    if op.kind in ("copy", "combine"):
        arriving = [row[chunk] for chunk in chunks]
        chunks = [op.other] if isinstance(op.other, int) else list(op.other)
    else:
        channel = channels.get((op.other, rank))
        if not channel:
            return False
        arriving = channel.pop(0)
    for chunk, values in zip(chunks, arriving, strict=True):
        row[chunk] = row[chunk] + values if op.kind in ("recv_reduce", "combine") else values
    return True
