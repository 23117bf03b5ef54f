"""The groups of all kinds know the same reductions by the same names."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from worlds import KINDS, run_groups  # noqa: E402

from unisono.errors import UsageError  # noqa: E402


def told(call):
    with pytest.raises(UsageError) as error:
        call()
    return str(error.value)


def reduced(group):
    found = {}
    for op in ("sum", "prod", "max", "min", "band", "bor", "bxor"):
        x = torch.tensor([2, 3, 6]) + group.rank
        group.all_reduce(x, op=op, name="x", phase="forward")
        found[op] = x.tolist()
    average = torch.tensor([1.0 + group.rank])
    group.all_reduce(average, op="avg", name="x", phase="forward")
    out = torch.zeros(1)
    group.reduce_scatter(out, torch.tensor([2.0, 3.0]), op="prod", name="x", phase="forward")
    found["avg"], found["scattered"] = average.tolist(), out.tolist()
    for call in (group.all_reduce, lambda x, **settings: group.reduce_scatter(x[:1].clone(), x, **settings)):
        message = told(lambda call=call: call(torch.ones(2), op="product", name="x", phase="forward"))
        assert "there is no reduction 'product'; expected one of sum, " in message
    assert "op='avg' on" in told(lambda: group.all_reduce(torch.ones(2).long(), op="avg", name="x", phase="forward"))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_all_groups_know_the_same_reductions_by_the_same_names(kind):
    one, two = run_groups(reduced, 2, kind=kind)
    assert {op: one[op] for op in one if op != "scattered"} == {
        "sum": [5, 7, 13], "prod": [6, 12, 42], "max": [3, 4, 7], "min": [2, 3, 6], "band": [2, 0, 6],
        "bor": [3, 7, 7], "bxor": [1, 7, 1], "avg": [1.5],
    }  # fmt: skip
    assert (one["scattered"], two["scattered"]) == ([4.0], [9.0])
