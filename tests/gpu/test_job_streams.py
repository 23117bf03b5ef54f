"""Jobs on fake GPUs that use several streams, threads and communicators at once, and CUDA graphs."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

from gpu.fake_arrays import new_stream
from gpu.gpu_ranks import MODES, on_gpu, this_gpu
from unisono.errors import UsageError

both_modes = pytest.mark.parametrize("mode", MODES)


def in_background(comm):
    driver = this_gpu()
    stream = new_stream(driver)
    arrays = [on_gpu(np.full(700, comm.rank + n, np.float32), stream=stream) for n in range(6)]
    works = [comm.all_reduce(x, async_op=True) for x in arrays]
    total = sum(range(comm.size))
    for n, (work, x) in enumerate(zip(works, arrays, strict=True)):
        work.wait()  # the stream waits, so that the copy comes later
        assert x.numpy().tolist() == [total + n * comm.size] * 700
        assert work.done()
        assert work.exception() is None
    comm.all_reduce(arrays[0], async_op=True).synchronize(30)
    comm.synchronize()
    driver.cuStreamDestroy_v2(stream)


@pytest.mark.parametrize("size", [1, 2, 3])
@both_modes
def test_calls_in_the_background(gpu_pools, mode, size):
    gpu_pools[size, mode].call(in_background)


def on_several_streams(comm):
    """Calls of one communicator on different streams happen in the order in which they are made."""
    driver = this_gpu()
    streams = [0, 2, new_stream(driver), new_stream(driver, blocking=True)]
    arrays = [on_gpu(np.ones(2000, np.float32), stream=stream) for stream in streams]
    for turn in range(20):
        comm.all_reduce(arrays[(turn * 7 + turn // 5) % 4])
    comm.synchronize()
    for n, x in enumerate(arrays):
        turns = sum((turn * 7 + turn // 5) % 4 == n for turn in range(20))
        assert x.numpy().tolist() == [comm.size**turns] * 2000
    for stream in streams[2:]:
        driver.cuStreamDestroy_v2(stream)


@both_modes
def test_one_communicator_on_several_streams(gpu_pools, mode):
    gpu_pools[3, mode].call(on_several_streams)


def from_two_threads(comm):
    driver = this_gpu()
    comms = [comm, comm.duplicate()]
    context, problems = ctypes.c_void_p(), []
    driver.cuCtxGetCurrent(ctypes.byref(context))

    def work(own):
        try:
            driver.cuCtxSetCurrent(context)
            stream = new_stream(driver)
            x = on_gpu(np.ones(3000, np.float32), stream=stream)
            for _ in range(10):
                own.all_reduce(x, op="max")
            x.write(np.full(3000, comm.rank, np.float32))
            own.all_reduce(x)
            assert x.numpy().tolist() == [sum(range(comm.size))] * 3000
            own.synchronize()
            driver.cuStreamDestroy_v2(stream)
        except BaseException as error:
            problems.append(repr(error))

    threads = [threading.Thread(target=work, args=(own,)) for own in comms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    comms[1].close()
    return problems


@pytest.mark.parametrize("size", [2, 3])
@both_modes
def test_two_communicators_at_once(gpu_pools, mode, size):
    assert gpu_pools[size, mode].call(from_two_threads) == [[]] * size


def on_streams_that_end(comm, synchronizes):
    """Each call is made on a new stream, which is destroyed after it."""
    driver = this_gpu()
    part = comm.duplicate()
    for turn in range(5):
        stream = new_stream(driver)
        x = on_gpu(np.full(500, comm.rank + turn, np.float32), stream=stream)
        part.all_reduce(x)
        if synchronizes:
            part.synchronize()
        assert x.numpy().tolist() == [sum(range(comm.size)) + turn * comm.size] * 500
        driver.cuStreamDestroy_v2(stream)
    part.close()


@pytest.mark.parametrize("synchronizes", [False, True])
@both_modes
def test_a_call_and_close_do_not_wait_for_a_stream_that_was_destroyed(gpu_pools, mode, synchronizes):
    gpu_pools[2, mode].call(on_streams_that_end, [synchronizes] * 2)


# ---- graphs -----------------------------------------------------------------------------------------------------


def capture(comm):
    driver = this_gpu()
    stream, graph, runnable = new_stream(driver), ctypes.c_void_p(), ctypes.c_void_p()
    x, other = (on_gpu(np.ones(3000, np.float32), stream=stream) for _ in range(2))
    comm.all_reduce(x)  # makes the plan, and shares the memory
    comm.synchronize()
    driver.cuStreamBeginCapture_v2(stream, 1)
    comm.all_reduce(x)
    comm.all_reduce(x)
    driver.cuStreamEndCapture(stream, ctypes.byref(graph))
    driver.cuGraphInstantiateWithFlags(ctypes.byref(runnable), graph, 0)
    assert x.numpy().tolist() == [comm.size] * 3000
    for turn in range(3):
        x.write(np.full(3000, comm.rank + turn, np.float32))
        driver.cuGraphLaunch(runnable, stream)
        assert x.numpy().tolist() == [(sum(range(comm.size)) + turn * comm.size) * comm.size] * 3000
        comm.all_reduce(other)  # calls between replays
        assert other.numpy().tolist() == [comm.size ** (turn + 1)] * 3000
    comm.synchronize()
    driver.cuGraphExecDestroy(runnable)
    driver.cuGraphDestroy(graph)
    driver.cuStreamDestroy_v2(stream)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_captured_calls_are_replayed(gpu_pools, size):
    gpu_pools[size, "kernel"].call(capture)


def capture_in_vain(comm):
    driver = this_gpu()
    stream, graph = new_stream(driver), ctypes.c_void_p()
    x = on_gpu(np.ones(3000, np.float32), stream=stream)
    comm.all_reduce(x)
    comm.synchronize()
    driver.cuStreamBeginCapture_v2(stream, 1)
    with pytest.raises(UsageError, match="captur"):
        comm.all_reduce(x)
    driver.library.cuStreamEndCapture(ctypes.c_uint64(stream), ctypes.byref(graph))
    comm.all_reduce(x)
    assert x.numpy().tolist() == [comm.size**2] * 3000


def test_stream_mode_refuses_to_be_captured(gpu_pools):
    gpu_pools[2, "stream"].call(capture_in_vain)
