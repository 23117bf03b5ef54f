"""The interpreter kernel, run on the host by one thread per rank, moves and combines what its program says."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.host_kernel import INPUT, OUTPUT, REDUCE, HostKernel, Move, Ref, Step, packed
from gpu.host_ranks import HostRanks


def direct(rank: int, size: int, parts: list[tuple[int, int]]) -> list[Step]:
    """Return the steps of an all-reduce in which every rank reduces one part and stores it to all ranks."""
    others = [(rank + i) % size for i in range(1, size)]
    offset, length = parts[rank]
    everyone = range(size)
    move = Move(
        tuple(Ref(r, INPUT, offset) for r in everyone), tuple(Ref(r, OUTPUT, offset) for r in everyone), length, REDUCE
    )
    return [
        Step(moves=(move,), signals=tuple((other, 1) for other in others)),
        Step(waits=tuple((other, 1) for other in others)),
    ]


def split(count: int, size: int, item: int) -> list[tuple[int, int]]:
    """Return offset and length, in bytes, of the part of each rank."""
    ends = [count * r // size for r in range(size + 1)]
    return [(ends[r] * item, (ends[r + 1] - ends[r]) * item) for r in range(size)]


@pytest.mark.parametrize("blocks", [1, 3, 4])
@pytest.mark.parametrize("size", [2, 3, 8])
def test_an_all_reduce_gives_the_sum_on_every_rank(size, blocks):
    ranks = HostRanks(HostKernel(), size, blocks)
    rng = np.random.default_rng(size)
    for count in (0, 1, 5, 1000, 40_001):
        inputs = [rng.standard_normal(count).astype(np.float32) for _ in range(size)]
        for mine, values in zip(ranks.ranks, inputs, strict=True):
            mine.set_buffers(values.copy(), np.full(count, np.nan, np.float32), np.zeros(0, np.uint8))
        parts = split(count, size, 4)
        ranks.prepare([packed(rank, size, direct(rank, size, parts)) for rank in range(size)])
        wanted = inputs[0].copy()
        for values in inputs[1:]:
            wanted = wanted + values
        for _ in range(2):  # the same launch again, as a CUDA graph would replay it
            ranks.run()
            for mine in ranks.ranks:
                assert mine.mailbox.fault == 0
                assert mine.mailbox.started == mine.mailbox.completed == mine.state.calls
                assert mine.buffers["output"].tobytes() == wanted.tobytes(), count
                mine.buffers["output"][:] = np.nan
