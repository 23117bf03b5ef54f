"""Whole jobs on fake GPUs: real processes, the real engine, the kernel's build for the host. Results are exact."""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arrays import dtype_of
from gpu.gpu_ranks import KERNELS, MODES, on_gpu, run_on_gpus
from tests.comm.test_against_play import WITH_DATA, compare
from unisono.algorithms import catalogue
from unisono.collectives import find

SIZES = (1, 2, 3, 5, 8)
both_modes = pytest.mark.parametrize("mode", MODES)


def call_on_gpu(comm, name, given, length, dtype, op, root, algorithm, codec):
    """Make a call on CUDA arrays; return the result as bytes, and whether the input is unchanged."""
    collective = find(name)
    held = collective.held_after(comm.rank, comm.size, comm.size, root or 0)
    how = {
        "algorithm": algorithm,
        "codec": codec,
        **({"op": op} if op else {}),
        **({"root": root} if collective.rooted else {}),
    }
    if collective.single_array:
        array = on_gpu(given if given is not None else np.zeros(length, dtype_of(dtype)))
        getattr(comm, name)(array, **how)
        found = array.numpy()
        comm.synchronize()
        return (found.tobytes() if held else None), bool(held) or found.tobytes() == given.tobytes()
    source = on_gpu(given)
    out = on_gpu(np.zeros(length * len(held) // comm.size, dtype_of(dtype))) if held else None
    getattr(comm, name)(out, source, **how)
    comm.synchronize()
    kept = source is None or source.numpy().tobytes() == given.tobytes()
    return (None if out is None else out.numpy().tobytes()), kept


def check(pool, algorithm, length, dtype, op, root, seed):
    compare(pool, algorithm, length, dtype, op, root, seed, run=call_on_gpu)


# ---- every collective ---------------------------------------------------------------------------------------------


def algorithms_for(size, all_of_them):
    """Return every algorithm, or two of each collective, which depend on the number of ranks."""
    for collective in WITH_DATA:
        serving = catalogue.algorithms_serving(collective, size)
        yield from serving if all_of_them else random.Random(size).sample(serving, min(2, len(serving)))


@pytest.mark.parametrize("all_of_them", [False, pytest.param(True, marks=pytest.mark.long)], ids=["some", "all"])
@pytest.mark.parametrize("size", SIZES)
@both_modes
def test_every_collective_computes_the_bits_of_play(gpu_pools, mode, size, all_of_them):
    for algorithm in algorithms_for(size, all_of_them):
        length = 1003 if not algorithm.collective.blocked else 203 * size
        op = "sum" if algorithm.collective.reduces else None
        root = size - 1 if algorithm.collective.rooted else None
        check(gpu_pools[size, mode], algorithm, length, "float32", op, root, 7)


@both_modes
def test_vectors_of_many_tiles_are_exact(gpu_pools, mode):
    for name in ("direct", "ring"):
        check(gpu_pools[3, mode], catalogue.find(name, find("all_reduce")), 200_003, "float32", "sum", None, 5)


@st.composite
def cases(draw):
    size = draw(st.sampled_from(SIZES))
    collective = draw(st.sampled_from(WITH_DATA))
    algorithm = draw(st.sampled_from(catalogue.algorithms_serving(collective, size)))
    dtype, op = draw(st.sampled_from(KERNELS))
    root = draw(st.integers(0, size - 1)) if collective.rooted else None
    length = draw(st.sampled_from([0, 1, 2, 7, 64, 1000, 4099, 40_000]))
    if collective.blocked:
        length *= size
    return size, algorithm, length, dtype, op if collective.reduces else None, root, draw(st.integers(0, 1000))


RANDOM = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}


@both_modes
@settings(max_examples=75, **RANDOM)
@given(cases())
def test_random_calls_compute_the_bits_of_play(gpu_pools, mode, case):
    size, *rest = case
    check(gpu_pools[size, mode], *rest)


@pytest.mark.long
@both_modes
@settings(max_examples=500, **RANDOM)
@given(cases())
def test_a_thousand_random_calls_compute_the_bits_of_play(gpu_pools, mode, case):
    size, *rest = case
    check(gpu_pools[size, mode], *rest)


def compare_with_cpu(comm):
    """Make calls whose algorithm the communicator chooses, on the CPU and on the GPU; return what differs."""
    differing = []
    for length in (5, 5000):
        own = np.arange(length * comm.size, dtype=np.int64) * (comm.rank + 1)
        for name in ("all_reduce", "broadcast", "reduce", "all_to_all", "all_gather", "reduce_scatter"):
            if name in ("all_reduce", "broadcast", "reduce"):
                cpu = (own.copy(),)
            elif name == "all_to_all":
                cpu = (np.zeros_like(own), own)
            elif name == "all_gather":
                cpu = (np.zeros_like(own), own[:length].copy())
            else:
                cpu = (np.zeros(length, np.int64), own)
            options = {"op": "prod"} if "reduce" in name else {}
            gpu = tuple(map(on_gpu, cpu))
            getattr(comm, name)(*gpu, **options)
            getattr(comm, name)(*cpu, **options)
            if gpu[0].numpy().tobytes() != cpu[0].tobytes():
                differing.append((name, length))
    return differing


@pytest.mark.parametrize("size", [1, 2, 7])
@both_modes
def test_chosen_algorithms_give_the_results_of_the_cpu(gpu_pools, mode, size):
    assert gpu_pools[size, mode].call(compare_with_cpu) == [[]] * size


def state_of(comm):
    comm.all_reduce(on_gpu(np.ones(4, np.float32)))
    return comm.gpu.mode


@pytest.mark.parametrize(
    ("size", "mode", "expected"), [(2, "kernel", "kernel"), (2, "stream", "stream"), (1, "stream", "kernel")]
)
def test_the_mode_follows_from_mps(gpu_pools, size, mode, expected):
    assert gpu_pools[size, mode].call(state_of) == [expected] * size


def see_one_gpu_each(comm, driver):
    x = on_gpu(np.full(100, comm.rank, np.float32))
    comm.all_reduce(x)
    assert x.numpy().tolist() == [sum(range(comm.size))] * 100
    return comm.gpu.mode


def test_ranks_with_separate_gpus_need_no_mps():
    assert run_on_gpus(on_own_device, 3, settings="devices=3") == ["kernel"] * 3


def on_own_device(comm, driver):
    context = ctypes.c_void_p()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), comm.rank)
    driver.cuCtxSetCurrent(context)
    return see_one_gpu_each(comm, driver)


# ---- kinds of calls -----------------------------------------------------------------------------------------------


def unequal(comm):
    rank, size = comm.rank, comm.size
    sizes = [(3 * r + 1) % 5 * 100 for r in range(size)]  # one of them is 0
    parts = [np.arange(n, dtype=np.float32) + 1000 * r for r, n in enumerate(sizes)]
    whole = np.concatenate(parts)
    out, source = on_gpu(np.zeros_like(whole)), on_gpu(parts[rank])
    comm.all_gather(out, source, out_sizes=sizes)
    assert out.numpy().tobytes() == whole.tobytes()
    out, source = on_gpu(np.zeros_like(parts[rank])), on_gpu(whole)
    comm.reduce_scatter(out, source, in_sizes=sizes)
    assert out.numpy().tobytes() == (parts[rank] * size).tobytes()
    # rank s sends (2 s + d) % 4 * 50 elements to rank d
    to = [[(2 * s + d) % 4 * 50 for d in range(size)] for s in range(size)]
    source = on_gpu(np.concatenate([np.full(to[rank][d], 10 * rank + d, np.float32) for d in range(size)]))
    wanted = np.concatenate([np.full(to[s][rank], 10 * s + rank, np.float32) for s in range(size)])
    out = on_gpu(np.zeros_like(wanted))
    comm.all_to_all(out, source, in_sizes=to[rank], out_sizes=[to[s][rank] for s in range(size)])
    assert out.numpy().tobytes() == wanted.tobytes()
    comm.synchronize()


@pytest.mark.parametrize("size", [2, 3, 5])
@both_modes
def test_parts_of_unequal_lengths(gpu_pools, mode, size):
    gpu_pools[size, mode].call(unequal)


def empty(comm):
    nothing = np.zeros(0, np.float32)
    comm.all_reduce(on_gpu(nothing))
    comm.all_gather(on_gpu(nothing), on_gpu(nothing))
    comm.synchronize()
    x = on_gpu(np.ones(3, np.float32))
    comm.all_reduce(x)
    assert x.numpy().tolist() == [comm.size] * 3


@pytest.mark.parametrize("size", [1, 2, 3])
@both_modes
def test_empty_arrays_are_fine(gpu_pools, mode, size):
    gpu_pools[size, mode].call(empty)


def in_place(comm):
    whole = np.repeat(np.arange(comm.size, dtype=np.float32), 300)
    out = on_gpu(np.where(whole == comm.rank, whole, -1).astype(np.float32))
    comm.all_gather(out, out[300 * comm.rank : 300 * (comm.rank + 1)])
    assert out.numpy().tobytes() == whole.tobytes()
    # at any offset inside of an allocation
    array = on_gpu(np.full(1000, 2, np.float32))
    comm.all_reduce(array[3:702])
    assert array.numpy().tolist() == [2] * 3 + [2 * comm.size] * 699 + [2] * 298


@pytest.mark.parametrize("size", [1, 2, 5])
@both_modes
def test_parts_of_allocations_and_results_in_place(gpu_pools, mode, size):
    gpu_pools[size, mode].call(in_place)


def in_groups(comm):
    half = comm.split(comm.rank % 2, key=-comm.rank)
    members = [r for r in range(comm.size) if r % 2 == comm.rank % 2]
    x = on_gpu(np.full(500, comm.rank, np.float32))
    half.all_reduce(x)
    y = on_gpu(np.full(500, 1, np.float32))
    comm.all_reduce(y)
    half.broadcast(x, root=0)
    assert x.numpy().tolist() == [sum(members)] * 500
    assert y.numpy().tolist() == [comm.size] * 500
    twin = comm.duplicate()
    twin.all_reduce(y)
    assert y.numpy().tolist() == [comm.size**2] * 500
    twin.close()
    half.close()


@pytest.mark.parametrize("size", [2, 3, 5])
@both_modes
def test_groups(gpu_pools, mode, size):
    gpu_pools[size, mode].call(in_groups)


def exchange(comm):
    rank, size = comm.rank, comm.size
    right, left = (rank + 1) % size, (rank - 1) % size
    for turn, length in enumerate((1, 1000, 0, 30_000)):
        x, y = on_gpu(np.full(length, rank + turn, np.float32)), on_gpu(np.zeros(length, np.float32))
        if rank % 2 == 0:
            comm.send(x, right, tag=turn)
            comm.recv(y, left, tag=turn)
        else:
            comm.recv(y, left, tag=turn)
            comm.send(x, right, tag=turn)
        assert y.numpy().tolist() == [left + turn] * length
    # Freeing an array waits for all streams, so nothing is freed while messages wait for other ranks.
    own, received = on_gpu(np.full(9, rank, np.int64)), on_gpu(np.zeros(9, np.int64))
    works = [comm.send(own, right, async_op=True), comm.recv(received, left, async_op=True)]
    for work in works:
        work.synchronize()
    assert received.numpy().tolist() == [left] * 9


@pytest.mark.parametrize("size", [2, 4, 6])
@both_modes
def test_messages(gpu_pools, mode, size):
    gpu_pools[size, mode].call(exchange)
