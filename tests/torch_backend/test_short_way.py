"""Calls that go the short way (fast_path.py) do what those of the long way do, also on unusual tensors.

Each call is first made on ordinary tensors, so that its plan is known, and then on others as long and of their type.
"""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

from torch_ranks import run_ranks  # noqa: E402
from unisono.torch_backend import fast_path  # noqa: E402

warnings.filterwarnings("ignore", category=FutureWarning)  # torch has newer names for some of these calls
SIZE = 2
# By name: the call, the elements of the input and of the output (0: it is in place).
CALLS = {
    "all_reduce": (lambda out, x: dist.all_reduce(x), 4, 0),
    "broadcast": (lambda out, x: dist.broadcast(x, 1), 4, 0),
    "reduce": (lambda out, x: dist.reduce(x, 1), 4, 0),
    "all_gather_into_tensor": (dist.all_gather_into_tensor, 4, 4 * SIZE),
    "all_gather": (lambda out, x: dist.all_gather(list(out.chunk(SIZE)), x), 4, 4 * SIZE),
    "reduce_scatter_tensor": (dist.reduce_scatter_tensor, 4 * SIZE, 4),
    "all_to_all_single": (dist.all_to_all_single, 4 * SIZE, 4 * SIZE),
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
    """Return what the call makes of ordinary tensors, and leave its plan for the short way."""
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
                if dist.get_rank() == 0:  # alone: what two negative bits do to a sum, none does as well
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
    """Let the input and the output of calls lie over each other in all ways."""
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
            except (RuntimeError, ValueError):  # of ours, or of torch, which refuses some of these itself
                pass
    x = torch.ones(1)
    dist.all_reduce(x)
    return accepted, x.item()


def test_tensors_without_memory_or_of_a_wrong_length_are_refused_before_anything_is_sent():
    assert run_ranks(without_memory, SIZE) == [([], SIZE)] * SIZE


def counted():
    """Return how many calls of each kind go the short way after the first one."""
    found, run = {}, fast_path.run
    for name in CALLS:
        calls = []
        fast_path.run = lambda *given, calls=calls: calls.append(1) or run(*given)
        expected_of(name)
        found[name] = len(calls)
    fast_path.run = run
    return found


def test_all_calls_but_the_first_go_the_short_way():
    assert run_ranks(counted, SIZE) == [dict.fromkeys(CALLS, 2)] * SIZE
