"""The programs that `make gpu-test` runs on a GPU also run on a pretended one, so that they stay correct."""

from __future__ import annotations

from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")
import pretend_gpu  # noqa: E402
import torch.distributed as dist  # noqa: E402

from tests.gpu.torch_on_gpu import calls, pool, training  # noqa: E402
from tests.gpu.torch_on_gpu import test_collectives_on_gpu as programs  # noqa: E402
from torch_ranks import run_ranks  # noqa: E402


def pretended(function, *arguments):
    pretend_gpu.install()
    pool.HERE.append(torch.device("cpu"))
    dist.init_process_group("unisono", timeout=timedelta(seconds=30))
    found = function(*arguments)
    assert dist.group.WORLD._dispatcher.cuda.devices, "no call took the path of GPU tensors"
    return found


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_call_takes_the_path_of_gpu_tensors(size):
    assert run_ranks(pretended, size, calls.compare, (torch.float32, torch.bool), (1, 7), init=False) == [[]] * size


@pytest.mark.parametrize("function", [calls.unusual, calls.averages_of_integers])
def test_unusual_tensors_take_it(function):
    assert run_ranks(pretended, 2, function, init=False) == [[]] * 2


def test_batches_of_messages_take_it():
    assert run_ranks(pretended, 5, programs.batches, init=False) == [True] * 5


@pytest.mark.parametrize("function", [training.ddp, training.fsdp, training.tensor_parallel])
def test_trainings_take_it(function):
    for found, expected in run_ranks(pretended, 2, function, init=False):
        assert found == pytest.approx(expected, abs=1e-4)


def joined():
    outs = [torch.zeros(4), torch.zeros(4)]
    sources = [torch.ones(2), torch.full((2,), 2.0)]
    work = dist.group.WORLD.allgather_into_tensor_coalesced(outs, sources)
    value = work.get_future().then(lambda done: [out.tolist() for out in done.value()])
    return value.value(), work.is_completed(), work.is_success(), work.exception(), len(work.result())


def test_several_calls_have_one_future():
    expected = ([[1.0] * 4, [2.0] * 4], True, True, None, 2)
    assert run_ranks(pretended, 2, joined, init=False) == [expected] * 2


def recorded(folder):
    from unisono.torch_backend import flight_record

    x = torch.ones(4)
    dist.all_reduce(x)
    work = dist.all_reduce(x, async_op=True)
    states = dist.group.WORLD._dispatcher.streams
    states.completed = False
    early = [entry["state"] for entry in flight_record()["entries"]]
    states.completed = True
    work.wait()
    return early, [entry["state"] for entry in flight_record()["entries"]]


def test_the_flight_record_knows_which_calls_are_over(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCH_FR_BUFFER_SIZE", "10")
    for early, late in run_ranks(pretended, 2, recorded, tmp_path, init=False):
        assert early == ["scheduled", "scheduled"]
        assert late == ["completed", "completed"]


def unsigned_averages(dtype, numbers):
    x = torch.tensor(numbers, dtype=torch.int64).view(torch.uint64).to(dtype)
    dist.all_reduce(x, dist.ReduceOp.AVG)
    return x.tolist()


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64], ids=str)
def test_averages_of_unsigned_integers_are_exact(dtype):
    # Each of three ranks has the same number, so that the average is the number where the sum does not wrap around.
    bits = 8 * dtype.itemsize
    numbers = [0, 1, 2, 5, 2**bits // 3 - 1, 2**bits // 3]
    for found in run_ranks(pretended, 3, unsigned_averages, dtype, numbers, init=False):
        assert found == [3 * number % 2**bits // 3 for number in numbers]
