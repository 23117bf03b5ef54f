"""Typical calls of users, on real ranks."""

from __future__ import annotations

import numpy as np
import pytest

import unisono
from unisono import algorithm, one_per_rank, recv, recv_reduce, send
from unisono.collectives import all_reduce

SIZES = (1, 2, 3, 5, 8)


def unequal(comm):
    """Blocks of 0, 1, 2, ... elements, in every collective with blocks."""
    rank, size = comm.rank, comm.size
    sizes = [(3 * r) % 7 for r in range(size)]
    whole = np.concatenate([np.full(length, r, np.int32) for r, length in enumerate(sizes)])
    mine = np.full(sizes[rank], rank, np.int32)

    out = np.zeros_like(whole)
    comm.all_gather(out, mine, out_sizes=sizes)
    assert out.tolist() == whole.tolist()

    part = np.zeros(sizes[rank], np.int32)
    comm.reduce_scatter(part, whole, in_sizes=sizes)
    assert part.tolist() == (mine * size).tolist()

    root = size - 1
    out = np.zeros_like(whole) if rank == root else None
    comm.gather(out, mine, root=root, out_sizes=sizes)
    if rank == root:
        assert out.tolist() == whole.tolist()

    part = np.full(sizes[rank], -1, np.int32)
    comm.scatter(part, whole if rank == root else None, root=root, in_sizes=sizes)
    assert part.tolist() == mine.tolist()


@pytest.mark.parametrize("size", SIZES)
def test_blocks_of_unequal_length_are_supported(pools, size):
    pools[size].call(unequal)


def unequal_exchange(comm, scale, algorithm):
    """Rank s sends (s + 2d) % 4 elements to rank d: no rank knows all lengths."""
    rank, size = comm.rank, comm.size

    def length(s, d):
        return scale * ((s + 2 * d) % 4)

    in_sizes = [length(rank, d) for d in range(size)]
    out_sizes = [length(s, rank) for s in range(size)]
    source = np.concatenate([np.full(n, 100 * rank + d, np.int64) for d, n in enumerate(in_sizes)])
    expected = np.concatenate([np.full(n, 100 * s + rank, np.int64) for s, n in enumerate(out_sizes)])
    out = np.zeros(sum(out_sizes), np.int64)
    comm.all_to_all(out, source, in_sizes=in_sizes, out_sizes=out_sizes, algorithm=algorithm)
    assert out.tolist() == expected.tolist()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("algorithm", [None, "pairwise", "naive"])
def test_an_exchange_of_unequal_lengths_is_correct(pools, size, algorithm):
    for scale in (1, 50_000):
        pools[size].call(unequal_exchange, [scale] * size, [algorithm] * size)


def in_place(comm):
    """The input of an all-gather may be this rank's part of the output."""
    out = np.zeros(3 * comm.size)
    mine = out[3 * comm.rank : 3 * comm.rank + 3]
    mine[:] = comm.rank
    comm.all_gather(out, mine)
    assert out.tolist() == np.repeat(np.arange(float(comm.size)), 3).tolist()


@pytest.mark.parametrize("size", SIZES)
def test_an_all_gather_works_in_place(pools, size):
    pools[size].call(in_place)


def empty(comm):
    for name in ("all_reduce", "broadcast", "reduce"):
        getattr(comm, name)(np.ones(0))
    nothing = np.ones(0, np.int8)
    comm.all_gather(nothing, nothing.copy())
    comm.reduce_scatter(nothing, nothing.copy())
    comm.all_to_all(nothing, nothing.copy())
    comm.barrier()


@pytest.mark.parametrize("size", SIZES)
def test_empty_arrays_are_supported(pools, size):
    pools[size].call(empty)


def many_dimensions(comm):
    x = np.full((3, 4, 5), comm.rank, np.float32)
    comm.all_reduce(x)
    assert (x == sum(range(comm.size))).all()
    out = np.zeros((comm.size, 3, 4, 5), np.float32)
    comm.all_gather(out, x)
    assert (out == x).all()
    number = np.array(comm.rank)
    comm.all_reduce(number, op="max")
    assert number == comm.size - 1


def test_arrays_of_any_shape_are_supported(pools):
    pools[3].call(many_dimensions)


def inputs_stay(comm):
    """The input of a reduce is unchanged on all ranks but the root, and may be read-only there."""
    x = np.full(10_000, 1.0 + comm.rank)
    if comm.rank != 1:
        x.flags.writeable = False
    comm.reduce(x, root=1)
    assert (x == (sum(range(1, comm.size + 1)) if comm.rank == 1 else 1 + comm.rank)).all()


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_a_reduce_changes_the_array_of_the_root_only(pools, size):
    pools[size].call(inputs_stay)


@algorithm(all_reduce, chunks=one_per_rank)
def my_ring(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    for hop in range(1, size):
        yield send((rank - hop) % size, dst=right), recv_reduce((rank - hop - 1) % size, src=left)
    for hop in range(size - 1):
        yield send((rank - hop) % size, dst=right), recv((rank - hop - 1) % size, src=left)


def own_algorithm(comm):
    x = np.arange(1000.0) + comm.rank
    comm.all_reduce(x, algorithm=my_ring)
    assert (x == np.arange(1000.0) * comm.size + sum(range(comm.size))).all()
    x = np.ones(100)
    comm.all_reduce(x, algorithm=unisono.find("hierarchical").schedule(comm.size, node=2))
    assert (x == comm.size).all()


@pytest.mark.parametrize("size", SIZES)
def test_a_user_algorithm_and_a_schedule_with_options_are_supported(pools, size):
    pools[size].call(own_algorithm)


def many_plans(comm):
    for count in range(1, 1500):
        x = np.ones(count, np.int16)
        comm.all_reduce(x)
        assert x[-1] == comm.size


def test_more_kinds_of_calls_than_the_plan_cache_holds_are_correct(pools):
    pools[2].call(many_plans)


def same_bits(comm):
    random = np.random.default_rng(comm.rank)
    start = random.standard_normal(100_001).astype(np.float32)
    results = set()
    for _ in range(5):
        x = start.copy()
        comm.all_reduce(x)
        results.add(x.tobytes())
    assert len(results) == 1
    return results.pop()


def test_the_bits_are_the_same_on_every_rank_and_in_every_run(pools):
    assert len(set(pools[5].call(same_bits))) == 1


def explains(comm):
    said = comm.explain("all_reduce", 8)
    assert said.algorithm in str(said)
    assert said.next_best != said.algorithm
    return str(said)


def test_explain_names_the_algorithm_the_reason_and_the_next_best(pools):
    (text,) = set(pools[5].call(explains))
    assert text.startswith("all_reduce of 8 bytes on 5 ranks: ")
    assert "next best: " in text
    assert "predicted to take" in text


def memory(comm):
    comm.all_reduce(np.ones(10))
    few = comm.memory_in_use
    comm.all_to_all(np.ones(10 * comm.size), np.ones(10 * comm.size))
    return few, comm.memory_in_use


def test_memory_is_bounded_by_the_staging_areas(pools):
    from unisono.bootstrap.job_config import STAGING_BYTES

    for few, more in unisono.spawn(memory, 8):
        assert few < more < STAGING_BYTES + 200_000
