"""Repeated calls, blocking or asynchronous, on numpy arrays or torch tensors, take the engine's fast path."""

from __future__ import annotations

import numpy as np
import pytest

import unisono
from unisono.comm.dispatch import Dispatcher
from unisono.errors import UsageError

CALLS = 5


def count_full_calls(comm, make, async_op):
    """Make equal calls on new arrays; return the number of them that take the full path, and the results."""
    counted, call = [], Dispatcher.call
    Dispatcher.call = lambda *given, **more: counted.append(1) or call(*given, **more)
    results = []
    try:
        for _ in range(CALLS):
            x, whole, part = make(4), make(4 * comm.size), make(4)
            x[:] = comm.rank + 1
            whole[:] = comm.rank + 1
            works = [
                comm.all_reduce(x, op="max", async_op=async_op),
                comm.reduce_scatter(part, whole, async_op=async_op),
                comm.broadcast(whole, root=1, async_op=async_op),
                comm.all_gather(whole, part, async_op=async_op),
                comm.barrier(async_op=async_op),
            ]
            for work in works:
                assert (work is None) is not async_op
                if work is not None:
                    work.wait(timeout=30)
                    assert work.done()
                    assert work.exception() is None
                    assert "done" in repr(work)
            results.append((x.tolist(), part.tolist(), whole.tolist()))
    finally:
        Dispatcher.call = call
    return len(counted), results


def arrays(kind):
    if kind == "numpy":
        return lambda count: np.zeros(count, np.float32)
    import torch

    return (lambda count: torch.zeros(count)) if kind == "tensor" else (lambda count: torch.zeros(count + 3)[3:])


def on_ranks(comm, kind, async_op):
    return count_full_calls(comm, arrays(kind), async_op)


@pytest.mark.parametrize("kind", ["numpy", "tensor", "part of a tensor"])
@pytest.mark.parametrize("async_op", [False, True])
def test_only_the_first_of_equal_calls_takes_the_full_path(kind, async_op):
    if kind != "numpy":
        pytest.importorskip("torch")
    for long_calls, results in unisono.spawn(on_ranks, 2, kind, async_op, timeout=120):
        assert long_calls == 5  # one of each kind
        assert results == [([2.0] * 4, [3.0] * 4, [3.0] * 8)] * CALLS


def keep_arrays_alive(comm):
    """Drop the arrays and the works of asynchronous calls at once: the engine keeps what it needs."""
    comm.all_reduce(np.zeros(1000))
    last = np.zeros(1000)
    for number in range(50):
        comm.all_reduce(np.full(1000, float(number)), async_op=True)
        if number == 40:
            last[:] = comm.rank
            comm.all_reduce(last, async_op=True)
    comm.barrier()
    return last.tolist()


def test_asynchronous_calls_keep_their_arrays_alive():
    assert unisono.spawn(keep_arrays_alive, 2, timeout=60) == [[1.0] * 1000] * 2


def unusual_tensors(comm):
    """Make calls on tensors that the fast path must not accept, after equal calls on ordinary tensors."""
    import torch

    def tried(x, out=None):
        try:
            comm.all_reduce(x) if out is None else comm.all_gather(out, x)
        except UsageError as error:
            return error.id
        return "accepted"

    for _ in range(2):
        comm.all_reduce(torch.ones(4))
        comm.all_reduce(torch.ones(4, dtype=torch.complex64))
    freed, conjugate, negative = (
        torch.ones(4),
        torch.ones(4, dtype=torch.complex64).conj(),
        torch._neg_view(torch.ones(4)),
    )
    freed.untyped_storage().resize_(4)
    strided = torch.ones(8)[::2]
    found = [
        tried(x) for x in (freed, conjugate, negative, strided, torch.ones(4).to("meta"), torch.ones(4).to_sparse())
    ]
    parameter = torch.nn.Parameter(torch.ones(4), requires_grad=False)
    comm.all_reduce(parameter)
    out = torch.zeros(8)
    own = out[4 * comm.rank : 4 * comm.rank + 4]
    for _ in range(3):
        own.fill_(comm.rank + 1)
        comm.all_gather(out, own)  # in place
    other = out[1:5]
    return found, parameter.tolist(), out.tolist(), tried(other, out)


def test_unusual_tensors_are_rejected_as_on_the_full_path():
    pytest.importorskip("torch")
    for found, parameter, out, overlap in unisono.spawn(unusual_tensors, 2, timeout=60):
        assert "accepted" not in found
        assert found[1:4] == ["comm.lazy_view", "comm.lazy_view", "comm.not_contiguous_tensor"]
        assert parameter == [2.0] * 4
        assert out == [1.0] * 4 + [2.0] * 4
        assert overlap == "comm.arrays_overlap_elsewhere"
