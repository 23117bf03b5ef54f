"""Calls on GPU tensors go into the right streams in the right order; shown on a pretended GPU (pretend_gpu.py)."""

from __future__ import annotations

import gc
import weakref
from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")
import pretend_gpu  # noqa: E402
import torch.distributed as dist  # noqa: E402
from pretend_gpu import CALLER, log_of  # noqa: E402

from torch_ranks import run_ranks  # noqa: E402
from unisono.errors import CommError  # noqa: E402
from unisono.torch_backend.cuda_work import CudaWork  # noqa: E402


def pretended(function, *arguments):
    pretend_gpu.install()
    dist.init_process_group("unisono", timeout=timedelta(seconds=30))
    return function(dist.group.WORLD, *arguments)


def run(function, size, *arguments):
    return run_ranks(pretended, size, function, *arguments, init=False)


def blocking(group):
    x = torch.ones(4)
    dist.all_reduce(x)
    first = log_of(group)
    dist.all_reduce(x)
    return x.tolist(), first, log_of(group)


def test_a_blocking_call_goes_into_the_stream_of_the_caller_and_nothing_else_happens():
    for values, first, second in run(blocking, 2):
        assert values == [4.0] * 4
        assert first == second == [("call", "all_reduce", 0)]


def asynchronous(group):
    x = torch.ones(4)
    work = dist.all_reduce(x, async_op=True)
    started = log_of(group)
    assert isinstance(work, CudaWork)
    work.wait()
    return x.tolist(), started, log_of(group)


def test_an_asynchronous_call_waits_for_the_caller_and_the_caller_for_its_end():
    for values, started, waited in run(asynchronous, 2):
        assert values == [2.0] * 4
        assert started == [("follow", "own1", CALLER), ("call", "all_reduce", 1), ("record", "own1", 1)]
        assert waited == [("wait", CALLER, 1)]


def strided(group, is_async):
    x = torch.ones(4, 2)[:, 0]
    work = dist.all_reduce(x, async_op=is_async)
    if is_async:
        work.wait()
    return x.tolist(), log_of(group)


def test_results_are_copied_in_the_stream_of_the_call():
    for values, log in run(strided, 2, True):
        assert values == [2.0] * 4
        assert log == [
            ("follow", "own1", CALLER), ("call", "all_reduce", 1), ("enter", "own1"), ("leave", "own1"),
            ("record", "own1", 1), ("wait", CALLER, 1),
        ]  # fmt: skip
    for values, log in run(strided, 2, False):
        assert values == [2.0] * 4
        assert log == [("call", "all_reduce", 0)]


def alive(group):
    found = []
    for waits in (True, False):
        x = torch.ones(4)
        reference, address = weakref.ref(x), x.data_ptr()
        work = dist.all_reduce(x, async_op=True)
        del x
        gc.collect()
        held = reference() is not None
        if waits:
            work.wait()
        del work
        gc.collect()
        streams = group._dispatcher.streams
        found.append((held, reference() is None, {stream for at, stream in streams.kept if at == address}))
        streams.kept.clear()
    return found


def test_tensors_stay_alive_until_the_caller_waits_and_otherwise_the_allocator_is_told():
    for waited, dropped in run(alive, 2):
        assert waited == (True, True, set())
        assert dropped == (True, True, {"own1"})


def waits_elsewhere(group):
    x = torch.ones(4)
    streams = group._dispatcher.streams
    work = dist.all_reduce(x, async_op=True)
    with streams.on("own9"):
        work.wait()
    return log_of(group)[-3:], {stream for _, stream in streams.kept}


def test_if_another_stream_waits_the_allocator_is_told():
    for log, kept in run(waits_elsewhere, 2):
        assert log == [("enter", "own9"), ("wait", "own9", 1), ("leave", "own9")]
        assert kept == {"own1"}


def captures(group):
    x = torch.ones(4)
    dist.all_reduce(x)
    group._dispatcher.streams.capturing = True
    dist.all_reduce(x)
    work = dist.all_reduce(x, async_op=True)
    answers = work.is_completed(), work.is_success()
    work.wait(timedelta(seconds=1))
    group._dispatcher.streams.capturing = False
    return answers, work.is_completed(), x.tolist()


def test_no_event_is_queried_and_no_stream_synchronized_while_a_graph_is_captured():
    for answers, completed, values in run(captures, 2):
        assert answers == (True, True)
        assert completed
        assert values == [8.0] * 4


def times_out(group):
    work = dist.all_reduce(torch.ones(4), async_op=True)
    group._dispatcher.streams.completed = False
    assert not work.is_completed()
    with pytest.raises(dist.DistBackendError, match=r"has not finished after 0\.05 s"):
        work.wait(timedelta(seconds=0.05))
    log_of(group)
    work.wait()
    return log_of(group)


def test_the_host_waits_only_with_a_timeout():
    for log in run(times_out, 2):
        assert log == [("wait", CALLER, 1)]


def transfers(group):
    rank, size = dist.get_rank(), dist.get_world_size()
    right, left = (rank + 1) % size, (rank - 1) % size
    x, y = torch.full((3,), float(rank)), torch.zeros(3)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, x, right), dist.P2POp(dist.irecv, y, left)])
    log = log_of(group)
    for work in works:
        work.wait()
    return y.tolist(), log, log_of(group)


def test_messages_of_both_directions_have_separate_streams():
    for rank, (values, log, waited) in enumerate(run(transfers, 3)):
        right, left = (rank + 1) % 3, (rank - 1) % 3
        assert values == [float(left)] * 3
        assert log == [
            ("follow", "own1", CALLER), ("send", right, 1), ("record", "own1", 1),
            ("follow", "own2", CALLER), ("recv", left, 2), ("record", "own2", 2),
        ]  # fmt: skip
        assert waited == [("wait", CALLER, 1), ("wait", CALLER, 2)]


def coalesced(group):
    tensors = [torch.ones(2), torch.full((3,), 2.0)]
    with dist._coalescing_manager(group, torch.device("cpu"), async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    log = log_of(group)
    manager.wait()
    return [tensor.tolist() for tensor in tensors], log, log_of(group)


def test_coalesced_calls_are_waited_for_together():
    for values, log, waited in run(coalesced, 2):
        assert values == [[2.0, 2.0], [4.0, 4.0, 4.0]]
        assert [entry for entry in log if entry[0] == "call"] == [("call", "all_reduce", 1)] * 2
        assert waited == [("wait", CALLER, 1), ("wait", CALLER, 2)]


def futures(group):
    x = torch.ones(4)
    future = dist.all_reduce(x, async_op=True).get_future()
    assert future.done()
    done = future.then(lambda given: given.value()[0] / 2)
    return done.value().tolist(), log_of(group)[-1]


def test_a_future_is_complete_and_its_value_belongs_to_the_stream_of_the_call():
    for values, last in run(futures, 2):
        assert values == [1.0] * 4
        assert last == ("future", "own1")


def faults(group):
    x = torch.ones(4)
    work = dist.all_reduce(x, async_op=True)
    group._dispatcher.cuda.comm.fault = CommError("rank 1 is gone")
    found = []
    for call in (work.wait, lambda: dist.all_reduce(x), lambda: dist.all_reduce(x, async_op=True), dist.barrier):
        with pytest.raises(dist.DistBackendError, match="rank 1 is gone"):
            call()
        found.append(type(work.exception()).__name__)
    assert not work.is_success()
    dist.destroy_process_group()  # the error was seen
    return found


def test_a_fault_is_raised_by_wait_and_by_every_later_call():
    assert run(faults, 2) == [["CommError"] * 4] * 2


def unseen_fault(group):
    dist.all_reduce(torch.ones(4))
    group._dispatcher.cuda.comm.fault = CommError("rank 1 is gone")
    with pytest.raises(dist.DistBackendError, match="rank 1 is gone"):
        dist.destroy_process_group()
    return group._dispatcher.comm.closed


def test_a_fault_that_the_program_has_not_seen_is_raised_when_the_group_is_destroyed():
    assert run(unseen_fault, 2) == [True, True]


def barrier(group):
    dist.barrier()
    before = log_of(group)
    dist.all_reduce(torch.ones(1), async_op=True)
    log_of(group)
    dist.barrier()
    return before, log_of(group)


def test_a_barrier_comes_after_everything_in_the_streams():
    for before, log in run(barrier, 2):
        assert [entry[0] for entry in before] in (["call"], [])
        assert [entry for entry in log if entry[0] == "synchronize"] == [
            ("synchronize", "own1"),
            ("synchronize", CALLER),
        ]


def any_source(group):
    with pytest.raises(ValueError, match="from any rank; expected a source"):
        dist.recv(torch.ones(1))
    return True


def test_a_receive_from_any_rank_is_refused():
    assert run(any_source, 1) == [True]
