"""Calls are ordered by streams: the host does not wait, and the results are right however long the GPU takes."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

from tests.gpu.torch_on_gpu.pool import here  # noqa: E402

CYCLES = 200_000_000  # of the GPU's clock: about 0.1 s
BUSY_S = 0.03  # less than they take


def behind_long_work(later):
    """Reduce numbers that the GPU has not written yet; return the result, and whether the host went on at once."""
    x = torch.zeros(100_000, device=here())
    dist.all_reduce(x)  # connects the ranks
    torch.cuda.synchronize()
    dist.barrier()
    began = time.perf_counter()
    torch.cuda._sleep(CYCLES)
    x.fill_(dist.get_rank() + 1.0)
    work = dist.all_reduce(x, async_op=later)
    if later:
        work.wait()
    y = x * 2
    took = time.perf_counter() - began
    return set(y.tolist()), took < BUSY_S


@pytest.mark.parametrize("later", [False, True], ids=["blocking", "asynchronous"])
def test_a_call_waits_for_earlier_work_and_the_host_does_not(ranks, later):
    total = ranks.size * (ranks.size + 1) / 2
    for values, at_once in ranks.run(behind_long_work, later):
        assert values == {2 * total}
        assert at_once


def on_another_stream():
    """Make calls on a stream of the program, and use the results on the default stream."""
    stream = torch.cuda.Stream()
    x = torch.zeros(100_000, device=here())
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(CYCLES // 4)
        x.fill_(1.0)
        dist.all_reduce(x)
        work = dist.all_reduce(x, async_op=True)
    work.wait()  # the default stream waits for the second call, and so for everything before it
    return set((x + 0).tolist())


def test_calls_belong_to_the_current_stream(ranks):
    assert ranks.run(on_another_stream) == [{float(ranks.size**2)}] * ranks.size


def completion():
    x = torch.ones(1000, device=here())
    dist.all_reduce(x)
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda._sleep(CYCLES)
    work = dist.all_reduce(x, async_op=True)
    early = work.is_completed()
    try:
        work.wait(timedelta(milliseconds=5))
        error = ""
    except dist.DistBackendError as raised:
        error = str(raised)
    work.wait(timedelta(seconds=20))
    return early, error, work.is_completed(), work.is_success(), work.exception()


def test_a_work_tells_when_the_gpu_has_finished(ranks):
    for early, error, late, success, exception in ranks.run(completion):
        assert not early
        assert "has not finished after 0.005 s" in error
        assert late
        assert success
        assert exception is None


def reuse():
    """Drop tensors while calls use them; new tensors get their memory, and must not disturb the calls."""
    size, wrong = dist.get_world_size(), 0
    for step in range(30):
        outs, works = [], []
        for _ in range(4):
            source = torch.full((50_000,), float(step), device=here())
            out = torch.zeros(50_000 * size, device=here())
            works.append(dist.all_gather_into_tensor(out, source, async_op=True))
            outs.append(out)
            del source
            torch.full((50_000,), -1.0, device=here())  # where the source was, if the allocator thinks it is free
        for work in works:
            work.wait()
        del works
        wrong += sum(not bool((out == step).all()) for out in outs)
    dropped = []
    for step in range(30):  # without waiting
        x = torch.full((50_000,), 1.0, device=here())
        kept = x if step % 10 == 0 else None
        dist.all_reduce(x, async_op=True)
        del x
        torch.full((50_000,), -1.0, device=here())
        if kept is not None:
            dropped.append(kept)
    torch.cuda.synchronize()
    return wrong, [set(x.tolist()) for x in dropped]


def test_memory_is_not_reused_while_a_call_uses_it(ranks):
    for wrong, kept in ranks.run(reuse):
        assert wrong == 0
        assert kept == [{float(ranks.size)}] * 3


def overlap():
    """Start many calls while the GPU computes, and wait for them in another order."""
    a = torch.randn(512, 512, device=here())
    tensors = [torch.full((10_000 + index,), float(index), device=here()) for index in range(10)]
    works = []
    for tensor in tensors:
        works.append(dist.all_reduce(tensor, async_op=True))
        a = (a @ a).clamp(-1, 1)
    for work in reversed(works):
        work.wait()
    return [set(tensor.tolist()) for tensor in tensors], bool(torch.isfinite(a).all())


def test_calls_overlap_with_computation(ranks):
    for found, finite in ranks.run(overlap):
        assert found == [{float(index * ranks.size)} for index in range(10)]
        assert finite


def callbacks():
    x = torch.ones(1000, device=here())
    dist.all_reduce(x)
    torch.cuda._sleep(CYCLES // 10)
    future = dist.all_reduce(x, async_op=True).get_future()
    halved = future.then(lambda done: done.value()[0] / 2)

    def reduce_again(done):
        y = done.value().clone()
        dist.all_reduce(y)
        return y

    return set(halved.then(reduce_again).wait().tolist()), future.done()


def test_callbacks_see_the_result_and_may_make_calls(ranks):
    assert ranks.run(callbacks) == [({ranks.size**3 / 2}, True)] * ranks.size


def graph():
    """Capture calls and computation in a CUDA graph; return None where calls cannot be captured."""
    size = dist.get_world_size()
    x = torch.ones(4096, device=here())
    out = torch.zeros(4096 * size, device=here())
    dist.all_reduce(x)
    dist.all_gather_into_tensor(out, x)
    status = dist.group.WORLD.communicator.gpu
    if status.mode != "kernel":
        return str(status.reason)
    x.fill_(1.0)
    torch.cuda.synchronize()
    dist.barrier()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        x.mul_(2.0)
        dist.all_reduce(x)
        x.div_(size)
        work = dist.all_gather_into_tensor(out, x, async_op=True)
        completed = work.is_completed()
        work.wait()
        out.add_(1.0)
    found = []
    for _ in range(5):
        captured.replay()
        dist.all_reduce(torch.ones(7, device=here()))  # calls outside of the graph in between
        found.append((x[0].item(), set(out.tolist())))
    return completed, found


def test_calls_can_be_captured_in_a_graph_in_kernel_mode(ranks):
    answers = ranks.run(graph)
    if isinstance(answers[0], str):
        pytest.skip(f"stream mode cannot be captured: {answers[0]}")
    for completed, found in answers:
        assert completed
        assert found == [(2.0**step, {2.0**step + 1}) for step in range(1, 6)]


def profiled():
    x = torch.ones(100, device=here())
    with torch.profiler.profile() as profile:
        dist.all_reduce(x)
    return sorted({event.name for event in profile.events() if "unisono" in event.name or "c10d" in event.name})


def test_calls_appear_in_profiles(ranks):
    for names in ranks.run(profiled):
        assert names == ["c10d::allreduce_", "unisono:all_reduce"]


def overhead():
    """Return the host's microseconds for one blocking all-reduce of 16 bytes, and for one asynchronous one."""
    x = torch.ones(4, device=here())
    found = []
    for later in (False, True):
        times = []
        for _ in range(20):
            torch.cuda.synchronize()
            dist.barrier()
            began = time.perf_counter()
            for _ in range(20):
                work = dist.all_reduce(x, async_op=later)
                if later:
                    work.wait()
            times.append((time.perf_counter() - began) / 20 * 1e6)
        found.append(sorted(times)[len(times) // 2])
        x.zero_()
    return found


def test_the_host_overhead_of_a_call_is_printed(start):
    found = start(2).run(overhead)
    print(f"\nhost overhead of all_reduce through torch on 2 ranks, µs (blocking, asynchronous): {found}")
    assert all(blocking < 200 for blocking, _ in found)
