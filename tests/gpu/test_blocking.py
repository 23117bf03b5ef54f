"""Programs end though functions of CUDA block: see "What may block" in docs/gpu.md.

A kernel that waits for a peer runs until the peer's kernel does. Many functions of CUDA may wait for the kernels of
their process, and hold up the other threads of the process meanwhile. On these fake GPUs, all of them always do
(``implicit=1``).
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import numpy as np
import pytest

from gpu.fake_arrays import new_stream
from gpu.gpu_ranks import MODES, on_gpu, outcomes_on_gpus, run_on_gpus
from leaks import nothing_is_left_behind  # noqa: F401 (for every test here)
from unisono.errors import PeerLost

both_modes = pytest.mark.parametrize("mode", MODES)
LARGE = 5 << 20  # elements; their copies do not fit into the memory that is prepared for copies
TOLD_S = 2.0  # a lost rank is reported within this time
KILLED_S = 0.3


def step(comm, other, driver, rng, streams):
    """Make the calls of one step of a program, in which each rank blocks wherever it may."""
    own = random.Random(rng.random() * (comm.rank + 1))  # what only this rank does
    blocking = (
        lambda: driver.fake_lazy_load(),
        lambda: on_gpu(np.zeros(100, np.float32)).free(),
        lambda: driver.cuCtxSynchronize(),
        lambda: time.sleep(0.02),
        lambda: None,
    )
    length = rng.choice((1, 1000, 70_000))
    x = on_gpu(np.full(length, comm.rank + 1, np.float32), stream=rng.choice(streams))
    y = on_gpu(np.full(100, comm.rank + 1, np.float32), stream=rng.choice(streams))
    own.choice(blocking)()
    work = comm.all_reduce(x, async_op=True)
    own.choice(blocking)()
    other.all_reduce(y, op="max")
    own.choice(blocking)()
    work.wait()
    total = comm.size * (comm.size + 1) // 2
    assert (x.numpy() == total).all()
    assert (y.numpy() == comm.size).all()
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    sent, received = on_gpu(np.full(50, comm.rank, np.float32)), on_gpu(np.zeros(50, np.float32))
    works = [comm.recv(received, left, async_op=True), comm.send(sent, right, async_op=True)]
    own.choice(blocking)()
    comm.all_reduce(y, op="min")
    for each in works:
        each.wait()
    assert (received.numpy() == left).all()
    for array in (x, y, sent, received):
        array.free()


def train(comm, driver, steps):
    rng = random.Random(7)
    streams = [0, new_stream(driver)]
    other = comm.duplicate()
    for _ in range(steps):
        step(comm, other, driver, rng, streams)
    large = on_gpu(np.full(LARGE, comm.rank + 1, np.float32))
    comm.all_reduce(large)
    driver.fake_lazy_load()
    comm.all_reduce(large)
    assert large.numpy()[-1] == comm.size * (comm.size + 1) // 2 * comm.size
    driver.cuStreamDestroy_v2(streams[1])


@pytest.mark.parametrize("size", [2, 3])
@both_modes
def test_programs_do_not_deadlock_where_every_function_of_cuda_waits_for_kernels(mode, size):
    run_on_gpus(train, size, 3, settings=MODES[mode] + ";implicit=1")


@pytest.mark.long
@both_modes
def test_long_programs_do_not_deadlock_where_every_function_of_cuda_waits_for_kernels(mode):
    run_on_gpus(train, 5, 40, settings=MODES[mode] + ";implicit=1", timeout=240.0)


def in_four_communicators(comm, driver):
    """On rank 1, the streams of the first two communicators are late; a GPU has room for two kernels of a process."""
    comms = [comm, *(comm.duplicate() for _ in range(3))]
    streams = [new_stream(driver) for _ in comms]
    arrays = [on_gpu(np.full(10, comm.rank + 1, np.float32), stream=stream) for stream in streams]
    for each, x in zip(comms, arrays, strict=True):
        each.all_reduce(x)
        each.synchronize()
    for turn in range(3):
        if comm.rank == 1:
            driver.fake_delay(streams[0], 200)
            driver.fake_delay(streams[1], 200)
        for each, x in zip(comms[turn:] + comms[:turn], arrays[turn:] + arrays[:turn], strict=True):
            each.all_reduce(x, op="max", timeout=10.0)
    assert [x.numpy()[0] for x in arrays] == [3.0] * 4
    for each in comms:
        each.synchronize()


def test_kernels_of_more_communicators_than_fit_on_the_gpu_take_turns():
    run_on_gpus(in_four_communicators, 2, settings="mps=1;resident=2")


def lose_a_rank_while_opening_memory(comm, driver):
    x = on_gpu(np.ones(1000, np.float32))
    comm.all_reduce(x)
    comm.synchronize()
    new = on_gpu(np.ones(1000, np.float32))  # rank 0 will have to open that of rank 1
    comm.barrier()
    if comm.rank == 1:
        threading.Timer(KILLED_S, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
        comm.all_reduce(new)  # its kernel starts after the death of this process
        time.sleep(10)
    began = time.monotonic()
    comm.all_reduce(x)
    with pytest.raises(PeerLost, match="rank 1") as lost:
        comm.synchronize()
    return lost.value.rank, time.monotonic() - began


def test_a_lost_rank_is_reported_though_its_memory_was_being_opened():
    """The thread that opens memory waits for the kernel, and the kernel for the lost rank."""
    settings = ["mps=1;implicit=1", "mps=1;implicit=1;slow_launch=600"]
    outcomes = outcomes_on_gpus(lose_a_rank_while_opening_memory, 2, settings=settings)
    rank, told_s = outcomes[0].value
    assert rank == 1
    assert told_s < KILLED_S + TOLD_S
