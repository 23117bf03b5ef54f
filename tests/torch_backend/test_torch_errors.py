"""Errors of the backend can be caught as errors of torch and as errors of Unisono."""

from __future__ import annotations

import pickle
import traceback
from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

from torch_ranks import run_ranks  # noqa: E402
from unisono import errors as unisono  # noqa: E402
from unisono.torch_backend.torch_errors import AT_THE_START, as_torch_error, raises_torch_errors  # noqa: E402

COMM_ERRORS = [
    unisono.CommError, unisono.CollectiveTimeout, unisono.PeerLost, unisono.MismatchError, unisono.Aborted
]  # fmt: skip


@pytest.mark.parametrize("kind", COMM_ERRORS)
def test_a_communication_error_is_an_error_of_both_unisono_and_torch(kind):
    before = kind("rank 2 is gone", rank=2)
    error = as_torch_error(before)
    assert error is before
    assert isinstance(error, kind)
    assert isinstance(error, dist.DistBackendError)
    assert (str(error), error.rank, type(error).__name__) == ("rank 2 is gone", 2, kind.__name__)
    kinds = type(error)
    assert type(as_torch_error(error)) is kinds


@pytest.mark.parametrize("kind", COMM_ERRORS)
def test_an_error_survives_pickling(kind):
    error = as_torch_error(kind("rank 2 is gone", rank=2))
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), copy.rank) == ("rank 2 is gone", 2)


def test_a_usage_error_is_a_value_error_and_a_runtime_error():
    error = as_torch_error(unisono.UsageError("no such root"))
    assert isinstance(error, unisono.UsageError)
    assert isinstance(error, ValueError)
    assert isinstance(error, RuntimeError)
    assert not isinstance(error, dist.DistError)
    assert str(pickle.loads(pickle.dumps(error))) == "no such root"


def test_other_errors_are_not_converted():
    assert type(as_torch_error(ZeroDivisionError("x"))) is ZeroDivisionError


def test_the_traceback_shows_the_origin_and_names_the_error_once():
    @raises_torch_errors
    def fail():
        raise unisono.PeerLost("rank 1 has ended", rank=1)

    with pytest.raises(dist.DistBackendError) as caught:
        fail()
    lines = "".join(traceback.format_exception(caught.value))
    assert lines.count("unisono.errors.PeerLost: rank 1 has ended") == 1
    assert 'raise unisono.PeerLost("rank 1 has ended", rank=1)' in lines


def test_at_init_a_timeout_is_a_store_error_and_a_lost_peer_is_a_network_error():
    assert isinstance(as_torch_error(unisono.CollectiveTimeout("late"), AT_THE_START), dist.DistStoreError)
    assert isinstance(as_torch_error(unisono.PeerLost("gone"), AT_THE_START), dist.DistNetworkError)


def caught_in(call):
    try:
        call()
    except unisono.UnisonoError as error:
        return [
            kind.__name__ for kind in (dist.DistBackendError, RuntimeError, ValueError) if isinstance(error, kind)
        ]
    return None


def errors_of_ranks():
    rank, group = dist.get_rank(), dist.group.WORLD
    x = torch.ones(2 + rank)
    found = {}
    late = dist.irecv(torch.ones(1), (rank + 1) % 2)
    found["wait"] = caught_in(lambda: late.wait(timedelta(milliseconds=50)))
    found["usage"] = caught_in(lambda: group.broadcast([torch.ones(1)], 7))
    found["tensor"] = caught_in(lambda: group.allreduce([torch.ones(1, dtype=torch.complex32)]))
    found["mismatch"] = caught_in(lambda: dist.all_reduce(x))
    dist.destroy_process_group()
    found["destroyed"] = caught_in(lambda: group.allreduce([x]).wait())
    found["barrier"] = caught_in(lambda: group.barrier())
    return found


def test_calls_raise_errors_that_are_also_torch_errors():
    for found in run_ranks(errors_of_ranks, 2):
        assert found == {
            "wait": ["DistBackendError", "RuntimeError"],
            "usage": ["RuntimeError", "ValueError"],
            "tensor": ["RuntimeError", "ValueError"],
            "mismatch": ["DistBackendError", "RuntimeError"],
            "destroyed": ["RuntimeError", "ValueError"],
            "barrier": ["RuntimeError", "ValueError"],
        }


def init_alone():
    with pytest.raises(dist.DistStoreError) as caught:
        dist.init_process_group(
            "unisono", store=dist.HashStore(), rank=0, world_size=2, timeout=timedelta(seconds=0.3)
        )
    assert isinstance(caught.value, unisono.CollectiveTimeout)
    assert isinstance(caught.value, dist.DistBackendError)
    return str(caught.value)


def test_init_without_the_other_ranks_raises_the_error_of_torch_stores():
    assert "have not connected: 1" in run_ranks(init_alone, 1, init=False)[0]


def warm_call_that_fails():
    rank = dist.get_rank()
    for _ in range(3):
        dist.all_reduce(torch.ones(4))
    if rank == 1:
        dist.destroy_process_group()
        return None
    return caught_in(lambda: dist.all_reduce(torch.ones(4)))


def test_the_fast_path_of_an_all_reduce_raises_torch_errors():
    assert run_ranks(warm_call_that_fails, 2)[0] == ["DistBackendError", "RuntimeError"]
