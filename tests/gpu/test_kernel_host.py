"""The interpreter kernel, run on the host by one thread per rank, moves and combines what its program says."""

from __future__ import annotations

import numpy as np
import pytest

from arrays import dtype_of, some_bits
from gpu.host_kernel import INPUT, OUTPUT, REDUCE, SCRATCH, HostKernel, Move, Ref, Step, packed
from gpu.host_ranks import HostRanks
from unisono import _engine


def direct(rank: int, size: int, parts: list[tuple[int, int]]) -> list[Step]:
    """Return the steps of an all-reduce in which every rank reduces one part and stores it to all ranks."""
    others = [(rank + i) % size for i in range(1, size)]
    offset, length = parts[rank]
    everyone = range(size)
    move = Move(
        tuple(Ref(r, INPUT, offset) for r in everyone),
        tuple(Ref(r, OUTPUT, offset) for r in everyone),
        length,
        REDUCE,
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
    made = 0
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
            made += 1
            for mine in ranks.ranks:
                assert mine.mailbox.fault == 0
                assert mine.state.calls == made
                assert mine.buffers["output"].tobytes() == wanted.tobytes(), count
                mine.buffers["output"][:] = np.nan


def aligned(nbytes: int) -> np.ndarray:
    """Return bytes at a multiple of 64."""
    memory = np.zeros(nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + nbytes]


@pytest.mark.parametrize("count", [1, 2, 8, 9, 13, 40])
@pytest.mark.parametrize(
    ("name", "op"), [("float32", "sum"), ("float16", "sum"), ("uint8", "max"), ("complex64", "prod")]
)
def test_any_number_of_sources_at_any_address(name, op, count):
    ranks = HostRanks(HostKernel(name, op), 1, 3)
    rng = np.random.default_rng(count)
    item = dtype_of(name).itemsize
    # All parts are aligned; all are equally unaligned; each has another alignment; none is a multiple of the element.
    for shifts in ((0, 0), (item, 0), (0, item), (1, 0)):
        for length in (0, 1, 3, 17, 1000, 30_001):
            stride = -(-length * item // 16) * 16 + 16 + shifts[1]
            arrays = [some_bits(name, length, rng) for _ in range(count)]
            memory = aligned(stride * count + 64)
            result = aligned(2 * stride + 64)
            for k, array in enumerate(arrays):
                at = k * stride + shifts[0]
                memory[at : at + array.nbytes] = array.view(np.uint8)
            result[:] = 0xA5
            ranks.ranks[0].set_buffers(memory, result, np.zeros(0, np.uint8))
            move = Move(
                tuple(Ref(0, INPUT, k * stride + shifts[0]) for k in range(count)),
                tuple(Ref(0, OUTPUT, k * stride + shifts[0]) for k in range(2)), length * item, REDUCE,
            )  # fmt: skip
            ranks.prepare([packed(0, 1, [Step(moves=(move,))])])
            ranks.run()
            wanted = arrays[0].copy()
            if count > 1:
                also = wanted.copy().view(np.uint8)
                first, *addends = (array.view(np.uint8) for array in arrays)
                _engine.combine_many(op, name, wanted.view(np.uint8), also, first, addends, "")
            expected = np.full(result.size, 0xA5, np.uint8)
            for k in range(2):
                at = k * stride + shifts[0]
                expected[at : at + wanted.nbytes] = wanted.view(np.uint8)
            assert result.tobytes() == expected.tobytes(), (shifts, length)


def test_a_program_in_several_passes_uses_the_same_scratch_memory():
    size, segment, count = 3, 4096, 5000
    ranks = HostRanks(HostKernel(), size, 2)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(count).astype(np.float32) for _ in range(size)]
    for mine, values in zip(ranks.ranks, inputs, strict=True):
        mine.set_buffers(values.copy(), np.zeros(count, np.float32), np.zeros(segment, np.uint8))
    nbytes = count * 4
    passes = -(-nbytes // segment)

    def steps(rank: int) -> list[Step]:
        right, left = (rank + 1) % size, (rank - 1) % size
        stage = Move((Ref(rank, INPUT),), (Ref(rank, SCRATCH),), nbytes)
        take = Move((Ref(rank, INPUT), Ref(left, SCRATCH)), (Ref(rank, OUTPUT),), nbytes, REDUCE)
        # The second signal says that this rank has read the scratch memory of its left neighbour.
        first = {right: 1}
        last = {left: first.get(left, 0) + 1}
        return [
            Step(moves=(stage,), signals=((right, 1),)),
            Step(waits=((left, 1),), moves=(take,), signals=tuple(last.items())),
            Step(waits=((right, 1 if right != left else 2),)),
        ]

    ranks.prepare([packed(rank, size, steps(rank), segment, passes) for rank in range(size)])
    for _ in range(3):
        ranks.run()
        for mine in ranks.ranks:
            wanted = inputs[mine.rank] + inputs[(mine.rank - 1) % size]
            assert mine.buffers["output"].tobytes() == wanted.tobytes()
            mine.buffers["output"][:] = 0


def test_moves_of_a_step_see_the_results_of_earlier_moves():
    ranks = HostRanks(HostKernel(), 1, 2)
    values = np.arange(10_000, dtype=np.float32)
    ranks.ranks[0].set_buffers(values.copy(), np.zeros(20_000, np.float32), np.zeros(0, np.uint8))
    twice = Move((Ref(0, INPUT), Ref(0, INPUT)), (Ref(0, OUTPUT),), 40_000, REDUCE)
    copy = Move((Ref(0, OUTPUT),), (Ref(0, OUTPUT, 40_000),), 40_000)
    ranks.prepare([packed(0, 1, [Step(moves=(twice, copy))])])
    ranks.run()
    assert np.array_equal(ranks.ranks[0].buffers["output"], np.concatenate([values * 2, values * 2]))


def two_ranks(timeout_s: float = 30.0, fingerprints=None) -> HostRanks:
    ranks = HostRanks(HostKernel(), 2, 1)
    for mine in ranks.ranks:
        mine.set_buffers(np.ones(100, np.float32), np.full(100, 7, np.float32), np.zeros(0, np.uint8))
    programs = [packed(rank, 2, direct(rank, 2, split(100, 2, 4))) for rank in range(2)]
    ranks.prepare(programs, fingerprints, timeout_s)
    return ranks


def test_different_calls_are_a_mismatch_and_touch_nothing():
    ranks = two_ranks(fingerprints=[1, 2])
    ranks.run()
    for mine in ranks.ranks:
        assert (mine.mailbox.fault, mine.mailbox.peer) == (1, 1 - mine.rank)
        assert mine.mailbox.completed == 0
        assert (mine.buffers["output"] == 7).all()


def test_a_rank_that_never_comes_is_a_timeout():
    ranks = two_ranks(timeout_s=0.05)
    ranks.run(only=[0])
    mailbox = ranks.ranks[0].mailbox
    assert (mailbox.fault, mailbox.peer, mailbox.kind) == (2, 1, 0)
    assert mailbox.completed == 0
    assert (ranks.ranks[0].buffers["output"] == 7).all()


def test_an_aborted_rank_stops_waiting():
    ranks = two_ranks()
    ranks.ranks[0].state.abort = 1
    ranks.run(only=[0])
    assert ranks.ranks[0].mailbox.fault == 3
    assert ranks.ranks[0].mailbox.completed == 0


def test_a_step_runs_alone_with_entries_that_the_host_has_posted():
    ranks = two_ranks()
    sequence = 5 << 48
    for mine, theirs in zip(ranks.ranks, reversed(ranks.ranks), strict=True):
        mine.launch.mode, mine.launch.steps = 1, 1
        mine.launch.peers[theirs.rank].fingerprint = 9 | sequence
        entry = mine.records[0].entry[1][theirs.rank]
        entry[0], entry[1], entry[2] = (
            value | sequence for value in (theirs.address("input"), theirs.address("output"), 9)
        )
        ranks.run(only=[mine.rank])
        assert mine.mailbox.fault == 0
    for mine in ranks.ranks:
        assert (mine.buffers["output"] == 2).all()
        assert list(mine.records[0].signal) == [0] * 16
