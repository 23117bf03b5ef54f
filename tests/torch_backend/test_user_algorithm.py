"""DDP trains with a user-defined algorithm of ten lines of Python, which is proved before use."""

from __future__ import annotations

from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from training import parameters_of, small_model, train  # noqa: E402

from torch_ranks import assert_close, run_ranks  # noqa: E402
from unisono import algorithm, one, recv, recv_reduce, send  # noqa: E402
from unisono.collectives import all_reduce  # noqa: E402
from unisono.errors import UnisonoError  # noqa: E402
from unisono.torch_backend import Options  # noqa: E402

generated = []


@algorithm(all_reduce, chunks=one)
def there_and_back(rank, size):
    """Pass the sum along the ranks to the last one, and pass the result back."""
    generated.append((rank, size))
    if rank > 0:
        yield recv_reduce(0, src=rank - 1)
    if rank < size - 1:
        yield send(0, dst=rank + 1)
        yield recv(0, src=rank + 1)
    if rank > 0:
        yield send(0, dst=rank - 1)


@algorithm(all_reduce, chunks=one)
def forgetful(rank, size):
    """Pass the sum to the last rank, and do not pass it back."""
    if rank > 0:
        yield recv_reduce(0, src=rank - 1)
    if rank < size - 1:
        yield send(0, dst=rank + 1)


def train_with(algorithms):
    generated.clear()
    dist.init_process_group("unisono", pg_options=Options(algorithms=algorithms), timeout=timedelta(seconds=20))
    model = DistributedDataParallel(small_model())
    train(model, torch.optim.SGD(model.parameters(), 0.1), dist.get_rank())
    return parameters_of(model), len(generated)


def train_with_user_algorithm():
    return train_with({"all_reduce": there_and_back})


def train_with_default():
    return train_with({})


def train_by_name():
    return train_with({"all_reduce": "ring"})


@pytest.mark.parametrize("size", [2, 4])
def test_a_model_trains_with_a_user_defined_algorithm(size):
    users, default = (
        run_ranks(function, size, init=False) for function in (train_with_user_algorithm, train_with_default)
    )
    for (parameters, calls), (expected, never) in zip(users, default, strict=True):
        assert_close(parameters, expected, 18, "differs from the default algorithm")
        assert calls >= size  # the proof needs the programs of all ranks
        assert never == 0


@pytest.mark.parametrize("size", [2, 4])
def test_a_model_trains_with_an_algorithm_selected_by_name(size):
    by_name, default = (run_ranks(function, size, init=False) for function in (train_by_name, train_with_default))
    assert_close(by_name, default, 18, "differs from the default algorithm")


def train_with_wrong_algorithm():
    dist.init_process_group("unisono", pg_options=Options(algorithms={"all_reduce": forgetful}))
    tensor = torch.full((10,), 7.0)
    with pytest.raises(UnisonoError) as caught:
        dist.all_reduce(tensor)
    return tensor.tolist(), str(caught.value)


def test_a_wrong_algorithm_is_rejected_before_anything_is_sent():
    for found, problem in run_ranks(train_with_wrong_algorithm, 2, init=False):
        assert found == [7.0] * 10
        assert "forgetful" in problem
