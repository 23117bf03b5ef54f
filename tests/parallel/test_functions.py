"""Each function makes its collectives, and its backward pass is the derivative of its forward pass."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from worlds import KINDS, run_groups  # noqa: E402

from unisono.parallel import (  # noqa: E402
    Split,
    all_gather_then_reduce_scatter,
    all_gather_then_split,
    all_reduce_then_nothing,
    nothing_then_all_reduce,
    record,
    reduce_scatter_then_all_gather,
    split_then_all_gather,
)

ROWS = 4  # on 3 ranks: 2, 1, 1
FULL, FILLED = ROWS * 8, 3 * 2 * 8  # bytes, without and with the zeros that pad the shares to one length

# function, whether its input is a part, its collectives in the forward pass and in the backward pass
PAIRS = [
    (nothing_then_all_reduce, False, [], [("all_reduce", FULL)]),
    (all_reduce_then_nothing, False, [("all_reduce", FULL)], []),
    (all_gather_then_reduce_scatter, True, [("all_gather", FILLED)], [("reduce_scatter", FILLED)]),
    (reduce_scatter_then_all_gather, False, [("reduce_scatter", FILLED)], [("all_gather", FILLED)]),
    (all_gather_then_split, True, [("all_gather", FILLED)], []),
    (split_then_all_gather, False, [], [("all_gather", FILLED)]),
]


def forward_and_backward(group, function, takes_part):
    split = Split(group, 0, ROWS)
    x = torch.ones(split.length if takes_part else ROWS, dtype=torch.float64, requires_grad=True)
    with record() as log:
        where = {"group": group} if "all_reduce" in function.__name__ else {"split": split}
        y = function(x * 1, name="x", **where)
        gradient = torch.arange(1.0, len(y) + 1) * (group.rank + 1)
        y.backward(gradient)
    entries = [(entry.collective, entry.bytes, entry.phase, entry.name) for entry in log]
    return y.detach(), gradient, x.grad, entries


def all_pairs(group):
    return [forward_and_backward(group, function, takes_part)[-1] for function, takes_part, *_ in PAIRS]


@pytest.mark.parametrize("kind", KINDS)
def test_each_function_makes_the_collectives_in_its_name(kind):
    for found in run_groups(all_pairs, 3, kind=kind):
        for entries, (_, _, forward, backward) in zip(found, PAIRS, strict=True):
            expected = [(*each, "forward", "x") for each in forward]
            assert entries == expected + [(*each, "backward", "gradient of x") for each in backward]


def test_nothing_then_all_reduce_sums_the_gradients_of_all_ranks():
    for y, _, gradient, _ in run_groups(forward_and_backward, 3, nothing_then_all_reduce, False):
        assert y.tolist() == [1] * ROWS
        assert gradient.tolist() == [6, 12, 18, 24]


def test_all_reduce_then_nothing_sums_the_inputs_and_passes_gradients_through():
    for y, incoming, gradient, _ in run_groups(forward_and_backward, 3, all_reduce_then_nothing, False):
        assert y.tolist() == [3] * ROWS
        assert torch.equal(gradient, incoming)


def test_all_gather_then_reduce_scatter_returns_to_each_part_its_share_of_the_summed_gradients():
    found = run_groups(forward_and_backward, 3, all_gather_then_reduce_scatter, True)
    assert [gradient.tolist() for _, _, gradient, _ in found] == [[6, 12], [18], [24]]


def test_reduce_scatter_then_all_gather_gathers_the_gradients_of_the_parts():
    for y, _, gradient, _ in run_groups(forward_and_backward, 3, reduce_scatter_then_all_gather, False):
        assert set(y.tolist()) == {3}
        assert gradient.tolist() == [1, 2, 2, 3]


def several(group):
    a, b = (torch.ones(number, requires_grad=True) for number in (2, 3))
    b_frozen = torch.ones(1)
    with record() as log:
        found = nothing_then_all_reduce(a, b, b_frozen, group=group, name="three")
        sum((each * (group.rank + 1)).sum() for each in found).backward()
    return a.grad.tolist(), b.grad.tolist(), [(entry.collective, entry.bytes) for entry in log]


def test_gradients_of_several_tensors_are_summed_in_one_call():
    assert run_groups(several, 3) == [([6.0] * 2, [6.0] * 3, [("all_reduce", 6 * 4)])] * 3
