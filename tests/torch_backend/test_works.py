"""Calls return works and futures, can be coalesced, and appear in the profiler."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
import torch.distributed._functional_collectives as functional  # noqa: E402

from torch_ranks import run_ranks  # noqa: E402


def use_a_work():
    x = torch.ones(1000)
    if dist.get_rank() == 0:
        work = dist.all_reduce(x, async_op=True)
        early = work.is_completed()
        time.sleep(0.2)
    else:
        time.sleep(0.2)
        work = dist.all_reduce(x, async_op=True)
        early = False
    assert work.wait(timedelta(seconds=10))
    assert work.is_completed()
    assert work.is_success()
    assert work.exception() is None
    assert work.result()[0] is x
    return early, x.sum().item()


def test_an_asynchronous_call_completes_when_all_ranks_have_made_it():
    for early, total in run_ranks(use_a_work, 2):
        assert not early
        assert total == 2000


def compute_meanwhile():
    x = torch.zeros(1 << 24)
    work = dist.all_reduce(x, async_op=True)
    steps = 0
    while not work.is_completed():
        steps += sum(range(100)) > 0
    work.wait()
    return steps


def test_python_code_runs_during_an_asynchronous_call():
    assert min(run_ranks(compute_meanwhile, 2)) > 10


def copy_back_without_waiting():
    x = torch.ones(3, 5).t()
    work = dist.all_reduce(x, async_op=True)
    deadline = time.monotonic() + 10
    while not work.is_completed():
        assert time.monotonic() < deadline
    return x.sum().item()


def test_the_result_is_in_place_when_is_completed_returns_true():
    assert run_ranks(copy_back_without_waiting, 2) == [30, 30]


def chain_futures():
    rank = dist.get_rank()
    x = torch.full((4,), rank + 1.0)
    future = dist.all_reduce(x, async_op=True).get_future()
    last = future.then(lambda done: done.value()[0] * 2).then(lambda done: done.value() + 1)
    failing = future.then(lambda done: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        failing.wait()
    return last.wait().tolist()


def test_callbacks_of_futures_can_be_chained_and_propagate_errors():
    assert run_ranks(chain_futures, 2) == [[7.0] * 4] * 2


def call_from_callbacks():
    """Make calls in callbacks, which run at different times on different threads, while main threads continue."""
    rank = dist.get_rank()
    futures = []
    for step in range(30):
        x = torch.full((8,), float(step))
        future = dist.all_reduce(x, async_op=True).get_future()
        if (step + rank) % 3 == 0:
            time.sleep(0.002)

        def again(done, step=step):
            y = torch.full((2,), float(step * 10))
            return dist.all_reduce(y, async_op=True).get_future().wait()[0] + done.value()[0][0]

        futures.append(future.then(again).then(lambda done: done.value()[0].item()))
        dist.all_reduce(torch.ones(3))
    return [future.wait() for future in futures]


@pytest.mark.parametrize("size", [2, 3])
def test_callbacks_can_make_collective_calls(size):
    wanted = [float(size * step * 11) for step in range(30)]
    assert run_ranks(call_from_callbacks, size) == [wanted] * size


def several_at_once():
    size = dist.get_world_size()
    xs = [torch.full((3,), float(place)) for place in range(4)]
    with dist._coalescing_manager():
        for x in xs:
            dist.all_reduce(x)
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
        for x in xs:
            dist.broadcast(x, 0)
    manager.wait()
    parts = [torch.zeros(2 * size), torch.zeros(3 * size)]
    dist.group.WORLD.allgather_into_tensor_coalesced(parts, [torch.ones(2), torch.ones(3)]).wait()
    return [x[0].item() for x in xs], [part.sum().item() for part in parts]


def test_several_calls_can_be_coalesced():
    assert run_ranks(several_at_once, 2) == [([0.0, 2.0, 4.0, 6.0], [4.0, 6.0])] * 2


def functional_calls():
    rank, size = dist.get_rank(), dist.get_world_size()
    world = dist.group.WORLD
    x = torch.full((4,), rank + 1.0)
    found = [functional.all_reduce(x, "sum", world).tolist()]
    found.append(functional.all_gather_single(x[:1], 0, world).tolist())
    found.append(functional.reduce_scatter_single(torch.ones(2 * size), "avg", 0, world).tolist())
    found.append(functional.all_to_all_single(torch.arange(2.0) + 10 * rank, None, None, world).tolist())
    out = torch.empty(size)
    torch.ops._c10d_functional.all_gather_into_tensor_out(x[:1], size, world.group_name, out=out)
    found.append(torch.ops._c10d_functional.wait_tensor(out).tolist())
    return found


def test_functional_collectives_give_the_expected_results():
    first, second = run_ranks(functional_calls, 2)
    assert first == [[3.0] * 4, [1.0, 2.0], [1.0, 1.0], [0.0, 10.0], [1.0, 2.0]]
    assert second == [[3.0] * 4, [1.0, 2.0], [1.0, 1.0], [1.0, 11.0], [1.0, 2.0]]


def sparse_sum():
    rank = dist.get_rank()
    x = torch.sparse_coo_tensor([[0, 1 + rank]], [[1.0, 2.0], [3.0, 4.0]], (4, 2), check_invariants=True)
    dist.all_reduce(x)
    return x.to_dense().tolist()


def test_sparse_tensors_are_summed():
    wanted = [[2.0, 4.0], [3.0, 4.0], [3.0, 4.0], [0.0, 0.0]]
    assert run_ranks(sparse_sum, 2) == [wanted, wanted]


def profiled():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        dist.all_reduce(torch.ones(4))
        dist.broadcast(torch.ones(4), 0)
    return sorted(event.name for event in profile.events() if event.name.startswith("unisono:"))


def test_the_profiler_shows_the_calls():
    assert run_ranks(profiled, 2) == [["unisono:all_reduce", "unisono:broadcast"]] * 2
