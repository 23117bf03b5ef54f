"""Calls on the fast path (fast_path.py) give the results of the full path, also on unusual tensors.

Each call is first made on ordinary tensors, so that its plan is cached, and then on others of equal length and dtype.
Every test uses blocking and asynchronous calls.
"""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

from torch_ranks import run_ranks  # noqa: E402
from unisono.torch_backend.dispatch import GroupDispatcher  # noqa: E402

warnings.filterwarnings("ignore", category=FutureWarning)  # torch has newer names for some of these calls
SIZE = 2

# name: the call, and the numbers of elements of the input and of the output (0: in place).
FUNCTIONS = {
    "all_reduce": (lambda out, x, **how: dist.all_reduce(x, **how), 4, 0),
    "broadcast": (lambda out, x, **how: dist.broadcast(x, 1, **how), 4, 0),
    "reduce": (lambda out, x, **how: dist.reduce(x, 1, **how), 4, 0),
    "all_gather_into_tensor": (dist.all_gather_into_tensor, 4, 4 * SIZE),
    "all_gather": (lambda out, x, **how: dist.all_gather(list(out.chunk(SIZE)), x, **how), 4, 4 * SIZE),
    "all_gather to separate outputs": (lambda out, x, **how: gather_apart(out, x, **how), 4, 4 * SIZE),
    "reduce_scatter_tensor": (dist.reduce_scatter_tensor, 4 * SIZE, 4),
    "all_to_all_single": (dist.all_to_all_single, 4 * SIZE, 4 * SIZE),
}


def gather_apart(out, x, **how):
    parts = [torch.zeros(x.numel() + 1, dtype=out.dtype, device=out.device)[1:] for _ in range(SIZE)]
    if out.numel() != SIZE * x.numel() or not out.is_cpu or out.untyped_storage().nbytes() == 0:
        parts = list(out.chunk(SIZE))  # the tests of invalid outputs must see their tensors
    work = dist.all_gather(parts, x, **how)
    if work is not None:
        work.wait()
    with torch.no_grad():
        out.copy_(torch.cat(parts))


def start_and_wait(function):
    def call(out, x):
        work = function(out, x, async_op=True)
        if work is not None:
            work.wait()

    return call


CALLS = {
    **FUNCTIONS,
    **{f"{name} async": (start_and_wait(call), given, made) for name, (call, given, made) in FUNCTIONS.items()},
}


def numbers(count):
    return 1 + dist.get_rank() + torch.arange(float(count))


def strided(values):
    return torch.stack([values, values * 0], 1)[:, 0]


def negative(values):
    found = torch._neg_view(-values)
    assert found.is_neg()
    assert found.is_contiguous()
    return found


def behind(values):
    return torch.cat([torch.zeros(3), values])[3:]


def expected_of(name):
    """Return the result of the call on ordinary tensors, and let the engine cache its plan."""
    call, given, made = CALLS[name]
    for _ in range(3):
        x, out = numbers(given), torch.zeros(made)
        call(out, x)
    return x.tolist(), out.tolist()


def on_unusual_tensors():
    bad = []
    for name, (call, given, made) in CALLS.items():
        expected = expected_of(name)
        for kind in (strided, negative, behind, torch.nn.Parameter):
            with torch.no_grad():
                x, out = numbers(given), torch.zeros(made)
                if dist.get_rank() == 0:  # on one rank only: the effects of two negative bits would cancel
                    x = kind(x)
                elif made:
                    out = kind(out)
                call(out, x)
                if (x.tolist(), out.tolist()) != expected:
                    bad.append((name, kind.__name__, x.tolist(), out.tolist(), expected))
    return bad


def test_tensors_in_any_layout_give_the_same_results():
    assert run_ranks(on_unusual_tensors, SIZE) == [[]] * SIZE


def overlapping():
    """Make calls whose input and output overlap in all ways."""
    bad = []
    for name, (call, given, made) in CALLS.items():
        if not made:
            continue
        _, expected = expected_of(name)
        for start in range(given + made):
            memory = torch.zeros(given + made + max(given, made))
            x, out = memory[start : start + given], memory[max(given, made) :][:made]
            x.copy_(numbers(given))
            call(out, x)
            if out.tolist() != expected:
                bad.append((name, start, out.tolist(), expected))
    return bad


def test_inputs_that_overlap_outputs_are_read_before_they_are_overwritten():
    assert run_ranks(overlapping, SIZE) == [[]] * SIZE


def without_memory():
    accepted = []
    for name, (call, given, made) in CALLS.items():
        expected_of(name)
        wrong = [(numbers(given).to("meta"), torch.zeros(made)), (numbers(given), torch.zeros(made))]
        wrong[1][0].untyped_storage().resize_(4)
        if made:
            wrong += [(numbers(given), torch.zeros(made)), (numbers(given), torch.zeros(made).to("meta"))]
            wrong[2][1].untyped_storage().resize_(0)
            wrong += [(numbers(given), torch.zeros(made + 2)), (numbers(given), torch.zeros(made).double())]
        for place, (x, out) in enumerate(wrong):
            try:
                call(out, x)
                accepted.append((name, place))
            except (RuntimeError, ValueError):  # raised by Unisono, or by torch, which rejects some of these itself
                pass
    x = torch.ones(1)
    dist.all_reduce(x)
    return accepted, x.item()


def test_tensors_without_memory_or_of_a_wrong_length_are_rejected_before_anything_is_sent():
    assert run_ranks(without_memory, SIZE) == [([], SIZE)] * SIZE


def full_path_calls():
    """Return how many of three calls of each kind take the full path."""
    counts, call = {}, GroupDispatcher.call
    for name in CALLS:
        calls = []
        GroupDispatcher.call = lambda *given, calls=calls: calls.append(1) or call(*given)
        expected_of(name)
        counts[name] = len(calls)
    GroupDispatcher.call = call
    return counts


def test_all_calls_except_the_first_take_the_fast_path():
    # An asynchronous call reuses the plan of the blocking one, and all_gather that of all_gather_into_tensor.
    no_full_path = {name for name in CALLS if name.endswith("async") or name == "all_gather"}
    expected = {name: 0 if name in no_full_path else 1 for name in CALLS}
    # All gathers of the same lengths share a plan.
    expected["all_gather to separate outputs"] = 0
    assert run_ranks(full_path_calls, SIZE) == [expected] * SIZE


def works_of_fast_calls():
    """Make many asynchronous calls, wait for them in a different order, and use their futures."""
    group, results = dist.group.WORLD, []
    tensors = [torch.full((8,), float(number)) for number in range(20)]
    dist.all_reduce(torch.zeros(8))  # caches the plan
    before = group._get_sequence_number_for_group()
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    futures = [work.get_future().then(lambda done: done.value()[0].sum().item()) for work in works]
    for work in reversed(works):
        work.wait()
        assert work.is_completed()
        assert work.is_success()
        assert work.exception() is None
        assert len(work.result()) == 1
    results = [tensor[0].item() for tensor in tensors]
    return results, [future.wait() for future in futures], group._get_sequence_number_for_group() - before


def test_works_of_the_fast_path_support_waiting_and_futures():
    doubled = [2.0 * number for number in range(20)]
    for results, sums, count in run_ranks(works_of_fast_calls, SIZE):
        assert results == doubled
        assert sums == [8 * number for number in doubled]
        assert count == 20
