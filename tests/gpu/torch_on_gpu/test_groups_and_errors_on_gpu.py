"""Groups are made in every way that torch has; wrong use and lost ranks raise clear errors."""

from __future__ import annotations

import os
import signal
import time

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

from tests.gpu.torch_on_gpu.pool import RankPool, here  # noqa: E402
from unisono.errors import CommError, PeerLost, UsageError  # noqa: E402


def both_devices():
    x, y = torch.ones(10, device=here()), torch.ones(10)
    dist.all_reduce(x)
    dist.all_reduce(y)
    objects = [None] * dist.get_world_size()
    dist.all_gather_object(objects, dist.get_rank())
    dist.barrier(device_ids=[here().index])
    part = dist.new_group([0, 1])
    dist.all_reduce(x, group=part)
    return set(x.tolist()), set(y.tolist()), objects


@pytest.mark.parametrize(
    ("backend", "bind"),
    [
        ("unisono", True),
        ("cpu:unisono,cuda:unisono", False),
        ("cuda:unisono", True),
        ("cuda:unisono,cpu:gloo", False),
    ],
)
def test_a_group_serves_both_devices(start, backend, bind):
    assert start(2, backend, bind).run(both_devices) == [({4.0}, {2.0}, [0, 1])] * 2


def split():
    part = dist.split_group(split_ranks=[[0, 1], [2, 3]])
    x = torch.full((5,), float(dist.get_rank()), device=here())
    dist.all_reduce(x, group=part)
    return set(x.tolist())


def test_a_group_can_be_split(start):
    assert start(4, "unisono", True).run(split) == [{1.0}, {1.0}, {5.0}, {5.0}]


def mistakes():
    size, found = dist.get_world_size(), []
    x = torch.ones(4, device=here())

    def expect(call):
        try:
            call()
        except UsageError as error:
            found.append(str(error) if isinstance(error, RuntimeError) else repr(error))

    expect(lambda: dist.all_gather_into_tensor(torch.zeros(4 * size), x))
    expect(lambda: dist.all_gather_into_tensor(torch.zeros(5, device=here()), x))
    expect(lambda: dist.all_gather([torch.zeros(4) for _ in range(size)], x))
    expect(lambda: dist.all_to_all_single(torch.zeros(3, device=here()), x, [1] * size, [1] * size))
    expect(lambda: dist.recv(x))
    expect(lambda: dist.all_reduce(x[:1].expand(4)))
    dist.all_reduce(x)
    return found, set(x.tolist())


def test_mistakes_raise_before_anything_is_sent(ranks):
    for found, values in ranks.run(mistakes):
        assert len(found) == 6, found
        assert "one device" in found[0]
        assert "one device" in found[2]
        assert "expected a source" in found[4]
        assert values == {float(ranks.size)}


def mismatch():
    x = torch.ones(4 + dist.get_rank(), device=here())
    try:
        dist.all_reduce(x)
        torch.cuda.synchronize()
        time.sleep(1.0)
        dist.all_reduce(x)
        torch.cuda.synchronize()
    except CommError as error:
        return (
            type(error).__name__,
            isinstance(error, dist.DistBackendError),
            torch.ones(3, device=here()).sum().item(),
        )
    return None


def test_different_calls_are_a_mismatch_and_cuda_still_works():
    pool = RankPool(2)
    try:
        assert pool.run(mismatch, limit_s=120) == [("MismatchError", True, 3.0)] * 2
    finally:
        pool.broken = True
        pool.close()


def lose_rank(victim):
    x = torch.ones(1000, device=here())
    dist.all_reduce(x)
    torch.cuda.synchronize()
    dist.barrier()
    if dist.get_rank() == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    work = dist.all_reduce(x, async_op=True)
    try:
        while time.monotonic() - began < 30:
            work.wait()
            time.sleep(0.05)
    except PeerLost as error:
        took = time.monotonic() - began
        torch.cuda.synchronize()
        return error.rank, took < 4.0, torch.ones(3, device=here()).sum().item()
    return None


@pytest.mark.parametrize("size", [2, 4])
def test_a_lost_rank_is_reported_to_all_others_and_cuda_still_works(size):
    pool = RankPool(size)
    try:
        answers = pool.try_run(lose_rank, size - 1, limit_s=120)
        for good, value in answers[:-1]:
            assert good, value
            assert value == (size - 1, True, 3.0)
    finally:
        pool.broken = True
        pool.close()
