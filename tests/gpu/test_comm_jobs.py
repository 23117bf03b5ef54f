"""Jobs on fake GPUs call a communicator as users do: collectives, messages, asynchronous calls, parts, repeats."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

from gpu import stub_torch
from gpu.fake_arrays import CudaArray, new_stream
from gpu.gpu_ranks import MODES, on_gpu, run_on_gpus
from gpu.stub_torch import CURRENT, Tensor
from unisono.errors import CommError, UsageError

both_modes = pytest.mark.parametrize("mode", MODES)


def numbers(rank, count=1000):
    return np.arange(count, dtype=np.float32) + rank


def total(size, count=1000):
    return np.sum([numbers(rank, count) for rank in range(size)], axis=0)


@both_modes
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_collectives_give_the_results_of_the_cpu(size, mode):
    def calls(comm, driver):
        x = on_gpu(numbers(comm.rank))
        comm.all_reduce(x)
        assert np.array_equal(x.numpy(), total(size))
        assert comm.gpu.mode == ("kernel" if size == 1 else mode)
        out = on_gpu(np.zeros(1000 * size, np.float32))
        comm.all_gather(out, x)
        assert np.array_equal(out.numpy(), np.tile(total(size), size))
        sizes = [3 * rank for rank in range(size)]
        mine = on_gpu(np.full(sizes[comm.rank], comm.rank, np.int64))
        gathered = on_gpu(np.zeros(sum(sizes), np.int64))
        comm.all_gather(gathered, mine, out_sizes=sizes)
        assert gathered.numpy().tolist() == [rank for rank in range(size) for _ in range(sizes[rank])]
        comm.barrier()
        comm.synchronize()

    run_on_gpus(calls, size, settings=MODES[mode])


@both_modes
def test_lengths_that_only_a_pair_knows(mode):
    def calls(comm, driver):
        rank, size = comm.rank, comm.size
        in_sizes = [(rank + 2 * other) % 4 for other in range(size)]
        out_sizes = [(other + 2 * rank) % 4 for other in range(size)]
        source = np.concatenate([np.full(n, 100 * rank + other) for other, n in enumerate(in_sizes)])
        expected = np.concatenate([np.full(n, 100 * other + rank) for other, n in enumerate(out_sizes)])
        out = on_gpu(np.zeros(sum(out_sizes), np.int64))
        comm.all_to_all(out, on_gpu(source), in_sizes=in_sizes, out_sizes=out_sizes)
        assert out.numpy().tolist() == expected.tolist()

    run_on_gpus(calls, 3, settings=MODES[mode])


@both_modes
def test_an_asynchronous_call_waits_for_the_current_stream_and_the_current_stream_for_it(mode):
    def calls(comm, driver):
        stream = new_stream(driver)
        x = CudaArray(driver, np.zeros(1000, np.float32), stream=stream)
        for turn in range(5):
            x.write(numbers(comm.rank + turn))
            work = comm.all_reduce(x, async_op=True)
            work.wait()
            assert np.array_equal(x.numpy(), total(comm.size) + turn * comm.size)
            work.synchronize()
            assert work.done()
            assert work.exception() is None

    run_on_gpus(calls, 3, settings=MODES[mode])


@both_modes
def test_messages_in_both_directions_do_not_wait_for_each_other(mode):
    def calls(comm, driver):
        right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        mine, theirs = on_gpu(numbers(comm.rank)), on_gpu(np.zeros(1000, np.float32))
        works = [comm.send(mine, right, tag=4, async_op=True), comm.recv(theirs, left, tag=4, async_op=True)]
        for work in works:
            work.wait()
        assert np.array_equal(theirs.numpy(), numbers(left))
        if comm.rank == 0:
            comm.send(mine, 1)
        elif comm.rank == 1:
            comm.recv(theirs, 0)
            assert np.array_equal(theirs.numpy(), numbers(0))
        comm.synchronize()

    run_on_gpus(calls, 3, settings=MODES[mode])


def test_parts_of_a_communicator_and_empty_arrays():
    def calls(comm, driver):
        comm.all_reduce(on_gpu(np.zeros(0, np.float32)))
        part = comm.split(comm.rank % 2)
        x = on_gpu(numbers(comm.rank))
        part.all_reduce(x)
        expected = np.sum([numbers(rank) for rank in range(comm.rank % 2, comm.size, 2)], axis=0)
        assert np.array_equal(x.numpy(), expected)
        part.close()
        comm.all_reduce(x, op="max")
        comm.synchronize()

    run_on_gpus(calls, 5, settings=MODES["kernel"])


def test_memory_that_cannot_be_shared_is_copied_and_reported_once():
    def calls(comm, driver):
        x = on_gpu(numbers(comm.rank), shareable=False)
        with pytest.warns(UserWarning, match="cannot be shared"):
            comm.all_reduce(x)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            comm.all_reduce(x)
        assert np.array_equal(x.numpy(), total(comm.size) * comm.size)
        assert comm.gpu.staged == 2

    run_on_gpus(calls, 2, settings=MODES["kernel"])


def test_a_machine_without_a_driver_is_reported():
    def calls(comm, driver):
        from unisono.gpu import driver as found

        found.LIBRARY = "libno-such-driver.so"
        with pytest.raises(UsageError, match="CUDA arrays cannot be used"):
            comm.all_reduce(on_gpu(numbers(0)))

    run_on_gpus(calls, 1)


@both_modes
def test_an_abort_ends_what_waits_on_the_gpu(mode):
    def calls(comm, driver):
        comm.all_reduce(on_gpu(numbers(0)))
        comm.barrier()
        if comm.rank == 1:
            time.sleep(0.2)
            comm.abort("enough")
            return
        work = comm.all_reduce(on_gpu(numbers(0)), async_op=True)
        with pytest.raises(CommError, match="enough"):
            work.synchronize(20)
        assert isinstance(work.exception(), CommError)
        with pytest.raises(CommError, match="enough"):
            comm.synchronize()

    run_on_gpus(calls, 2, settings=MODES[mode])


@both_modes
def test_repeated_calls_on_tensors_take_the_fast_path_on_the_current_stream(mode):
    def calls(comm, driver):
        stub_torch.install()
        x = Tensor(on_gpu(numbers(comm.rank)))
        comm.all_reduce(x)
        comm.dispatcher.gpu.call = None  # the full path fails from now on
        expected = total(comm.size)
        for stream in (0, new_stream(driver), new_stream(driver)):
            CURRENT["stream"] = x.array.stream = stream
            comm.all_reduce(x)
            expected = expected * comm.size
            assert np.array_equal(x.array.numpy(), expected)
        with pytest.raises(TypeError):
            comm.all_reduce(Tensor(on_gpu(numbers(0, 7))))
        comm.close()
        with pytest.raises(UsageError, match="closed"):
            comm.all_reduce(x)

    run_on_gpus(calls, 2, settings=MODES[mode])


def test_tensors_of_asynchronous_calls_are_recorded_for_the_stream_of_the_communicator():
    def calls(comm, driver):
        stub_torch.install()
        x = Tensor(on_gpu(numbers(comm.rank)))
        work = comm.all_reduce(x, async_op=True)
        work.synchronize()
        assert len(x.recorded) >= 1
        assert x.recorded[0] != 0

    run_on_gpus(calls, 2, settings=MODES["kernel"])
