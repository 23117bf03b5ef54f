"""The memory of jobs on fake GPUs: blocks are shared when they are first used, forgotten when they are freed."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest

from gpu.gpu_ranks import MODES, on_gpu, run_on_gpus
from leaks import nothing_is_left_behind  # noqa: F401 (for every test here)

both_modes = pytest.mark.parametrize("mode", MODES)


def allocate_and_free(comm, driver, turns):
    dice = random.Random(3)  # the same calls on all ranks
    own = random.Random(comm.rank)  # but different allocations
    held, others = [], []
    for _ in range(turns):
        length = dice.choice([10, 1000, 1000, 5000])
        x = on_gpu(np.full(length, comm.rank + 1, np.float32))
        comm.all_reduce(x)
        assert x.numpy().tolist() == [comm.size * (comm.size + 1) // 2] * length
        held.append(x)
        if own.random() < 0.3:
            others.append(on_gpu(np.zeros(own.choice([10, 1000, 5000]), np.float32)))
        while len(held) > own.randrange(1, 4):
            held.pop(own.randrange(len(held))).free()
        if own.random() < 0.2:
            others.clear()
    return driver.live()["imports"]


@pytest.mark.parametrize("size", [2, 3])
@both_modes
def test_new_blocks_at_old_addresses_are_new_blocks(mode, size):
    run_on_gpus(allocate_and_free, size, 60, settings=MODES[mode])


def leave_nothing(comm, driver):
    other = comm.duplicate()
    for each in (comm, other):
        x = on_gpu(np.ones(5000, np.float32))
        each.all_reduce(x)
        each.all_reduce(x, async_op=True).wait()
        if comm.size > 1:
            peer = comm.rank ^ 1
            (each.send if comm.rank % 2 == 0 else each.recv)(x, peer)
        x.free()  # waits for the stream
    comm.synchronize()
    other.close()
    comm.close()
    return driver.live()


@pytest.mark.parametrize("size", [1, 2, 4])
@both_modes
def test_a_closed_communicator_leaves_nothing_on_the_gpu(mode, size):
    nothing = dict.fromkeys(("allocations", "imports", "host_allocations", "streams", "events", "modules"), 0)
    assert run_on_gpus(leave_nothing, size, settings=MODES[mode]) == [nothing] * size


def close_and_connect_again(comm, driver):
    for turn in range(4):
        part = comm.duplicate()
        x = on_gpu(np.full(100, comm.rank + turn, np.float32))
        part.all_reduce(x)
        assert x.numpy().tolist() == [sum(range(comm.size)) + turn * comm.size] * 100
        part.close()
    return driver.live()["imports"]


@both_modes
def test_communicators_can_be_made_and_closed_again_and_again(mode):
    assert run_on_gpus(close_and_connect_again, 3, settings=MODES[mode]) == [0] * 3


def share_what_cannot_be_shared(comm, driver):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        private = on_gpu(np.full(3000, comm.rank, np.float32), shareable=comm.rank != 1)
        normal = on_gpu(np.full(3000, comm.rank, np.float32))
        for _ in range(2):
            private.write(np.full(3000, comm.rank, np.float32))
            comm.all_reduce(private)
            assert private.numpy().tolist() == [sum(range(comm.size))] * 3000
        comm.broadcast(private, root=1)
        comm.all_reduce(normal)
        out = on_gpu(np.zeros(3000 * comm.size, np.float32), shareable=False)
        comm.all_gather(out, normal)
        assert out.numpy().tolist() == [sum(range(comm.size))] * 3000 * comm.size
        comm.synchronize()
    return len([each for each in caught if "staging" in str(each.message)]), comm.gpu.staged > 0


@pytest.mark.parametrize("size", [2, 3])
@both_modes
def test_memory_that_cannot_be_exported_is_copied_and_this_is_reported_once(mode, size):
    assert run_on_gpus(share_what_cannot_be_shared, size, settings=MODES[mode]) == [(1, True)] * size


def use_slowly(comm, driver):
    for length in (100, 5000, 100_000):
        x = on_gpu(np.ones(length, np.float32))
        comm.all_reduce(x)
        assert x.numpy().tolist() == [comm.size] * length


@both_modes
def test_peers_that_open_memory_slowly_are_waited_for(mode):
    run_on_gpus(use_slowly, 3, settings=[MODES[mode], MODES[mode] + ";slow_open=100ms", MODES[mode]])
