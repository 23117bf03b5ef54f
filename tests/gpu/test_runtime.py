"""The runtime in C++ runs programs written by hand, on fake GPUs in real processes."""

from __future__ import annotations

import itertools
import os
import signal
import time

import numpy as np
import pytest

from gpu.fake_arrays import new_stream
from gpu.gpu_ranks import host_image, on_gpu, outcomes_on_gpus, run_on_gpus
from gpu.host_kernel import INPUT, OUTPUT, REDUCE, Move, Ref, Step, packed
from unisono import _engine
from unisono.errors import CollectiveTimeout, MismatchError, PeerLost

BLOCKS = 2
KERNEL = "float32.sum.none"
POST, SIGNAL, WAIT, LAUNCH = range(4)
both_modes = pytest.mark.parametrize("kernel_mode", [True, False], ids=["kernel", "stream"])


def exchange(comm, data):
    """Return the bytes of every rank, all of the same length."""
    all_of_them = np.zeros((comm.size, len(data)), np.uint8)
    comm.all_gather(all_of_them, np.frombuffer(data, np.uint8))
    return [each.tobytes() for each in all_of_them]


def connect(comm, kernel_mode):
    """Return the connected endpoint of this rank."""
    link = comm._link
    board = link.resources.first.reserve_space(_engine.gpu_board_bytes(comm.size)) if comm.rank == 0 else 0
    board = max(int(np.frombuffer(each, np.int64)[0]) for each in exchange(comm, np.int64(board).tobytes()))
    made = _engine.GpuEndpoint(
        _engine.GpuDriver("libcuda.so.1"), link.endpoint, board, 0, 16, BLOCKS, 1 << 20, kernel_mode
    )
    made.connect(exchange(comm, made.handles()))
    made.prepare()
    comm.barrier()
    made.load(KERNEL, host_image("float32", "sum", None, 16), 0)
    return made


def plan_of_sum(gpu, comm, length, text="sum", fingerprint=1):
    """Return the plan of an all-reduce in which every rank reads the inputs of all."""
    peers = [rank for rank in range(comm.size) if rank != comm.rank]
    sources = tuple(Ref(rank, INPUT) for rank in range(comm.size))
    one_source = comm.size == 1
    move = Move(sources, (Ref(comm.rank, OUTPUT),), 4 * length, 0 if one_source else REDUCE)
    steps = [Step((), (move,), tuple((peer, 1) for peer in peers)), Step(tuple((peer, 1) for peer in peers))]
    program = packed(comm.rank, comm.size, steps)
    ops = [(kind, peer, 1 if kind != POST else 0, 0) for kind in (POST, SIGNAL, WAIT) for peer in peers]
    ops += [(LAUNCH, 0, 0, 0)] + [(kind, peer, 2, 0) for kind in (SIGNAL, WAIT) for peer in peers]
    nothing = [0] * comm.size
    return gpu.make_plan(
        KERNEL, program.tobytes(), np.array(ops, np.uint32).tobytes(), BLOCKS, fingerprint,
        [fingerprint] * comm.size, nothing, nothing, 4 * length, 4 * length, text, 4 * length,
    )  # fmt: skip


def sum_once(comm, gpu, plan, length, seed, stream=0, shareable=True):
    """Return whether a call has the result of numpy."""
    inputs = [np.random.default_rng(seed * 100 + rank).integers(0, 99, length) for rank in range(comm.size)]
    source = on_gpu(inputs[comm.rank].astype(np.float32), stream=stream, shareable=shareable)
    out = on_gpu(np.zeros(length, np.float32), stream=stream, shareable=shareable)
    gpu.run(plan, source.address, out.address, stream, 20.0)
    event = gpu.record(stream)
    assert event.synchronize(20.0)
    return bool((out.numpy() == np.sum(inputs, axis=0).astype(np.float32)).all())


def sum_many_times(comm, driver, kernel_mode, length, shareable):
    gpu = connect(comm, kernel_mode)
    plan = plan_of_sum(gpu, comm, length)
    right = [sum_once(comm, gpu, plan, length, seed, shareable=shareable) for seed in range(12)]
    staged, registered = gpu.staged_buffers(), gpu.registered()
    gpu.close()
    del plan, gpu
    comm.barrier()
    return all(right), staged, registered, driver.live()


NOTHING = dict.fromkeys(("allocations", "imports", "host_allocations", "streams", "events", "modules"), 0)


@both_modes
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_calls_on_new_memory_are_exact_and_nothing_is_left_after_closing(size, kernel_mode):
    for right, staged, registered, live in run_on_gpus(sum_many_times, size, kernel_mode, 20_011, True):
        assert right
        assert staged == 0
        assert registered <= 6  # three for copies; freed memory is not registered any more
        assert live == NOTHING


@both_modes
def test_memory_that_cannot_be_shared_is_copied(kernel_mode):
    for right, staged, _, live in run_on_gpus(sum_many_times, 3, kernel_mode, 1003, False):
        assert right
        assert staged == 12
        assert live == NOTHING


def sum_on_streams(comm, driver, kernel_mode):
    gpu = connect(comm, kernel_mode)
    plan = plan_of_sum(gpu, comm, 5000)
    streams = [new_stream(driver) for _ in range(3)]
    arrays = [on_gpu(np.ones(5000, np.float32)) for _ in range(7)]
    driver.cuStreamSynchronize(0)
    for call, (source, out) in enumerate(itertools.pairwise(arrays)):  # each call needs the result of the one before
        gpu.run(plan, source.address, out.address, streams[call % 3], 20.0)
    assert gpu.record(streams[5 % 3]).synchronize(20.0)
    found = float(arrays[-1].numpy().max()), float(arrays[-1].numpy().min())
    gpu.close()
    return found


@both_modes
def test_calls_on_several_streams_keep_their_order(kernel_mode):
    assert run_on_gpus(sum_on_streams, 3, kernel_mode) == [(3.0**6, 3.0**6)] * 3


def send_around(comm, driver, kernel_mode):
    gpu = connect(comm, kernel_mode)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    outgoing, incoming = new_stream(driver), new_stream(driver)
    found = []
    for length in (1, 3000, 0, 50_001):
        source = on_gpu(np.full(length, comm.rank + length, np.float32), stream=outgoing)
        out = on_gpu(np.zeros(length, np.float32), stream=incoming)
        gpu.transfer(True, right, 5, source.address, 4 * length, "float32", outgoing, 20.0)
        gpu.transfer(False, left, 5, out.address, 4 * length, "float32", incoming, 20.0)
        for stream in (outgoing, incoming):
            assert gpu.record(stream).synchronize(20.0)
        found.append(bool((out.numpy() == left + length).all()))
    comm.barrier()
    gpu.close()
    return found


@both_modes
@pytest.mark.parametrize("size", [2, 3])
def test_messages_arrive(size, kernel_mode):
    assert run_on_gpus(send_around, size, kernel_mode) == [[True] * 4] * size


def use_after_closing(comm, _driver, kernel_mode):
    gpu = connect(comm, kernel_mode)
    plan = plan_of_sum(gpu, comm, 100)
    x = on_gpu(np.ones(100, np.float32))
    event = gpu.record(0)
    gpu.close()
    gpu.close()
    for call in (
        lambda: gpu.run(plan, x.address, x.address, 0, 1.0),
        lambda: plan_of_sum(gpu, comm, 100),
        lambda: gpu.load("float64.sum.none", b"", 0),
        lambda: gpu.transfer(True, 1 - comm.rank, 0, x.address, 4, "float32", 0, 1.0),
    ):
        with pytest.raises(ValueError, match="closed"):
            call()
    return event.done()


@both_modes
def test_a_closed_endpoint_refuses_calls(kernel_mode):
    assert run_on_gpus(use_after_closing, 2, kernel_mode) == [True, True]


# ---- faults -------------------------------------------------------------------------------------------------------


def fail(comm, _driver, kernel_mode, how):
    gpu = connect(comm, kernel_mode)
    odd = comm.rank == comm.size - 1
    different = odd and how == "mismatch"
    plan = plan_of_sum(gpu, comm, 100, "the other call" if different else "the call", 2 if different else 1)
    assert sum_once(comm, gpu, plan_of_sum(gpu, comm, 100), 100, 1)
    x, y = on_gpu(np.ones(100, np.float32)), on_gpu(np.ones(100, np.float32))
    comm.barrier()
    if odd and how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if odd and how == "absence":
        time.sleep(3)
        return
    began = time.monotonic()
    try:
        gpu.run(plan, x.address, y.address, 0, 0.7 if how == "absence" else 20.0)
        gpu.record(0).synchronize(20.0)
    finally:
        assert time.monotonic() - began < 2.5
        gpu.close()


@both_modes
@pytest.mark.parametrize("how", ["mismatch", "kill", "absence"])
def test_a_fault_names_the_call_and_the_ranks(kernel_mode, how):
    outcomes = outcomes_on_gpus(fail, 3, kernel_mode, how)
    kind = {"mismatch": MismatchError, "kill": PeerLost, "absence": CollectiveTimeout}[how]
    survivors = outcomes if how == "mismatch" else outcomes[:2]
    for outcome in survivors:
        assert isinstance(outcome.error, kind), outcome.story
        assert "the call" in str(outcome.error)
        assert "rank 2" in str(outcome.error)
        if how != "mismatch":
            assert outcome.error.rank == 2
