"""Calls on CUDA arrays go to the right streams, connect the GPUs once, and bad ones raise clear errors.

The engine's GPU classes are stubs that record what is done.
"""

from __future__ import annotations

import gc
import sys
import warnings
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import unisono
from gpu import stub_gpu
from gpu.stub_gpu import LOG, CudaArray
from unisono.comm.gpu_work import GpuWork
from unisono.errors import CollectiveTimeout, CommError, MismatchError, UsageError


def on_ranks(function, size):
    """Run a function on ranks with stubs; return what it returns on each."""

    def run(comm):
        stub_gpu.install()
        return function(comm)

    return unisono.spawn(run, size, timeout=20)


def error_of(action, kind=UsageError):
    with pytest.raises(kind) as caught:
        action()
    return caught.value


def kinds():
    return [entry[0] for entry in LOG]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_the_first_call_connects_the_gpus_of_all_ranks(size):
    def calls(comm):
        assert comm.gpu is None
        comm.all_reduce(CudaArray(1000))
        kernels = ["uint8.none.none", "int32.none.none"] if size == 1 else ["uint8.none.none", "float32.sum.none"]
        assert [entry[1] for entry in LOG if entry[0] == "load"] == kernels
        made, connected, _, run = (entry for entry in LOG if entry[0] != "load")
        assert connected[1:] == (size, {b"handle"})
        assert run[1].startswith("all_reduce(1000 float32, op=sum, algorithm=")
        assert run[1].endswith(", device=cuda)")
        assert run[5] == comm.timeout
        mode = "kernel" if size == 1 else "stream"
        assert (comm.gpu.mode, comm.gpu.device, comm.gpu.mps, comm.gpu.staged) == (mode, "Stub", False, 0)
        comm.all_reduce(CudaArray(1000), timeout=7)
        assert [kind for kind in kinds() if kind != "load"] == ["made", "connected", "prepared", "run", "run"]
        assert LOG[-1][5] == 7
        comm.close()
        assert kinds()[-1] == "close"
        return made[1]

    boards = on_ranks(calls, size)
    assert len(set(boards)) == 1
    assert boards[0] > 0


def test_all_collectives_are_enqueued_with_the_addresses_of_their_arrays():
    def calls(comm):
        rank, size, n = comm.rank, comm.size, 6
        whole, part = CudaArray(n * size, offset=4096), CudaArray(n)
        both = (part.address, whole.address)
        comm.all_gather(whole, part)
        assert LOG[-1][2:4] == both
        comm.reduce_scatter(part, whole)
        assert LOG[-1][2:4] == both[::-1]
        comm.all_to_all(whole, CudaArray(n * size))
        comm.all_to_all(
            whole, CudaArray(n * size), in_sizes=[n] * size, out_sizes=[n] * size
        )  # fmt: skip
        comm.broadcast(part, root=1)
        comm.reduce(part, op="max")
        comm.gather(whole if rank == 0 else None, part)
        assert LOG[-1][2:4] == (both if rank == 0 else (part.address, 0))
        comm.scatter(part, whole if rank == 2 else None, root=2)
        assert kinds().count("run") == 8
        runs = [entry[1].partition("(")[0] for entry in LOG if entry[0] == "run"]
        assert runs == [
            "all_gather", "reduce_scatter", "all_to_all", "all_to_all", "broadcast", "reduce", "gather", "scatter",
        ]  # fmt: skip
        comm.barrier()
        assert kinds().count("run") == 8

    on_ranks(calls, 3)


def test_a_call_runs_on_the_stream_of_its_array():
    def calls(comm):
        comm.all_reduce(CudaArray(stream=77))
        assert LOG[-1][4] == 77
        comm.all_reduce(CudaArray(stream=None))
        assert LOG[-1][4] == 0

    on_ranks(calls, 2)


def test_an_asynchronous_call_runs_on_a_stream_of_the_communicator_after_the_current_stream():
    def calls(comm):
        array = CudaArray(stream=77)
        work = comm.all_reduce(array, async_op=True)
        assert isinstance(work, GpuWork)
        first, waited, run, last = LOG[-4:]
        assert (first[0], first[2]) == ("record", 77)
        own = waited[2]
        assert waited == ("wait", first[1], own)
        assert own not in (0, 77)
        assert (run[0], run[4]) == ("run", own)
        assert last == ("record", last[1], own)
        work.wait()
        assert LOG[-1] == ("wait", last[1], 77)
        comm.all_reduce(array, async_op=True)
        assert LOG[-1][2] == own, "the next one runs on the same stream"

    on_ranks(calls, 2)


def test_arrays_of_an_asynchronous_call_live_until_it_is_over():
    def calls(comm):
        array = CudaArray()
        alive = weakref.ref(array)
        work = comm.all_reduce(array, async_op=True)
        event = work._event
        del array, work
        comm.all_reduce(CudaArray(), async_op=True)
        gc.collect()
        assert alive() is not None
        event.over = True
        comm.all_reduce(CudaArray(), async_op=True)
        gc.collect()
        assert alive() is None

    on_ranks(calls, 1)


def test_the_host_waits_for_a_call_only_if_asked():
    def calls(comm):
        work = comm.all_reduce(CudaArray(), async_op=True)
        assert not work.done()
        assert work.exception() is None
        assert "running" in repr(work)
        error = error_of(lambda: work.synchronize(0.5), CollectiveTimeout)
        assert "has not finished after 0.5 s" in str(error)
        assert LOG[-1][0] == "synchronize"
        error_of(lambda: work.wait(0.25), CollectiveTimeout)
        work._event.over = True
        work.synchronize()
        work.wait(0.25)
        assert work.done()
        assert work.exception() is None
        comm.synchronize()
        assert LOG[-1][0] == "synchronize all"

    on_ranks(calls, 1)


def test_a_broken_communicator_raises_its_error_from_the_work_and_from_synchronize():
    def calls(comm):
        over = comm.all_reduce(CudaArray(), async_op=True)
        over._event.over = True
        assert over.done()
        work = comm.all_reduce(CudaArray(), async_op=True)
        comm.barrier()
        if comm.rank == 0:
            comm.abort("enough")
        while not comm.broken:
            pass
        for action in (work.wait, comm.synchronize, comm.raise_if_broken):
            assert "enough" in str(error_of(action, CommError))
        work._event.over = True
        assert "enough" in str(error_of(work.synchronize, CommError))
        assert "enough" in str(work.exception())
        assert over.exception() is None, "it was over before"

    on_ranks(calls, 2)


def test_messages_run_on_separate_streams_by_direction():
    def calls(comm):
        other = 1 - comm.rank
        array = CudaArray(10)
        comm.send(array, other, tag=3)
        assert LOG[-1] == ("transfer", True, other, 3, array.address, 40, "float32", 0, comm.timeout)
        comm.recv(array, other, tag=3)
        assert LOG[-1][1:4] == (False, other, 3)
        comm.send(array, other, async_op=True)
        stream = LOG[-1][2]
        comm.recv(array, other, async_op=True)
        assert LOG[-1][2] != stream
        error = error_of(lambda: comm.recv(array))
        assert error.id == "comm.any_source_on_cuda"

    on_ranks(calls, 2)


def test_a_rank_that_passes_a_cpu_array_first_makes_both_ranks_fail_with_both_calls():
    def calls(comm):
        array = CudaArray() if comm.rank else np.ones(4, np.float32)
        text = str(error_of(lambda: comm.all_reduce(array), MismatchError))
        assert "GPU connection" in text
        assert "all_reduce(4 float32" in text

    on_ranks(calls, 2)


def test_a_device_that_a_rank_cannot_use_is_reported_on_all_ranks():
    def calls(comm):
        error = error_of(lambda: comm.all_reduce(CudaArray(device=5 if comm.rank == 1 else 0)))
        assert error.id == "gpu.problem_on_rank"
        assert error.parameters["rank"] == 1
        assert "there is no CUDA device 5" in str(error)
        comm.all_reduce(CudaArray())  # the communicator still works

    on_ranks(calls, 3)


def test_gpus_without_peer_access_are_refused():
    def calls(comm):
        stub_gpu.Driver.peers = False
        assert error_of(lambda: comm.all_reduce(CudaArray(device=comm.rank))).id == "gpu.no_peer_access"

    on_ranks(calls, 2)


def test_an_endpoint_that_cannot_be_made_is_reported_on_all_ranks():
    def calls(comm):
        stub_gpu.Endpoint.problem = "out of memory" if comm.rank == 1 else ""
        error = error_of(lambda: comm.all_reduce(CudaArray()), CommError)
        assert (error.rank, error.parameters["reason"]) == (1, "out of memory")
        assert comm.gpu is None
        assert kinds() == ([] if comm.rank == 1 else ["made", "load", "close"])

    on_ranks(calls, 3)


def test_the_device_of_a_rank_stays_the_same():
    def calls(comm):
        comm.all_reduce(CudaArray(device=1))
        error = error_of(lambda: comm.all_reduce(CudaArray(device=0)))
        assert error.id == "comm.other_cuda_device"
        assert (error.parameters["found"], error.parameters["expected"]) == (0, 1)
        comm.duplicate().all_reduce(CudaArray(device=0))
        comm.all_reduce(CudaArray(length=0))

    on_ranks(calls, 2)


def test_top_k_is_an_all_gather_of_what_the_gpu_has_encoded():
    def calls(comm):
        def all_reduce_topk_cuda(array, codec, size, op, all_gather, *, stream):
            assert (str(codec), size, op, stream) == ("topk:0.5", 2, "avg", 77)
            all_gather(200, 100, 24)

        sys.modules["unisono.gpu.topk"] = SimpleNamespace(all_reduce_topk_cuda=all_reduce_topk_cuda)
        comm.all_reduce(CudaArray(stream=77), codec="topk:0.5", op="avg")
        assert LOG[-1][1:5] == ("all_reduce(4 float32, op=avg, codec=topk:0.5, algorithm=all_gather, device=cuda)",
                                100, 200, 77)  # fmt: skip
        error = error_of(lambda: comm.all_reduce(CudaArray(), codec="topk:0.5", algorithm="ring"))
        assert error.id == "comm.topk_has_no_algorithm"

    on_ranks(calls, 2)


def test_top_k_without_torch_is_refused():
    def calls(comm):
        sys.modules["unisono.gpu.topk"] = None
        assert error_of(lambda: comm.all_reduce(CudaArray(), codec="topk:0.5")).id == "comm.topk_needs_torch"

    on_ranks(calls, 2)


def test_memory_that_cannot_be_shared_is_reported_once():
    def calls(comm):
        comm.all_reduce(CudaArray())
        stub_gpu.Endpoint.staged = 1
        with pytest.warns(
            UserWarning, match=f"rank {comm.rank}: the memory of a CUDA array cannot be shared"
        ) as found:
            comm.all_reduce(CudaArray(5))
        assert found[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            comm.all_reduce(CudaArray(6))
        assert comm.gpu.staged == 1

    on_ranks(calls, 2)


def test_code_that_builds_on_a_communicator_states_device_and_stream():
    def calls(comm):
        from unisono import collectives
        from unisono.comm.call_request import CallRequest
        from unisono.compiler import Lengths

        request = CallRequest(collectives.all_reduce, "avg", dtype="float32", lengths=Lengths((8,), (8,)))
        comm.enqueue(request, 100, 200, device=0, stream=55, timeout=3)
        assert LOG[-1][2:] == (100, 200, 55, 3)
        comm.enqueue_transfer(True, 1, 9, 100, 8, "float64", device=0, stream=55)
        assert LOG[-1] == ("transfer", True, 1, 9, 100, 64, "float64", 55, comm.timeout)
        comm.raise_if_broken()

    on_ranks(calls, 2)


def test_named_and_written_algorithms_are_used():
    def calls(comm):
        for name in ("ring", "naive"):
            comm.all_reduce(CudaArray(), algorithm=name)
            assert f"algorithm={name}" in LOG[-1][1]
        schedule = unisono.find("ring").schedule(comm.size)
        comm.all_reduce(CudaArray(), algorithm=schedule)
        assert error_of(lambda: comm.all_reduce(CudaArray(), algorithm=7)).id == "comm.not_an_algorithm"

    on_ranks(calls, 3)
