"""One table of reductions serves the communicator, torch groups, the player and the benchmark."""

from __future__ import annotations

import numpy as np
import pytest

from unisono.bench.cases import OPS, make_cases
from unisono.collectives import all_reduce
from unisono.comm.arrays import ELEMENT_BYTES
from unisono.errors import UsageError
from unisono.player.reduction import COMBINES
from unisono.reductions import INTEGERS_ONLY, NO_ORDER, NO_SUCH_REDUCTION, REDUCTIONS, WOULD_ROUND, check_op, kind_of

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
COMPLEX = ["complex64", "complex128"]


def rejection_of(op, dtype):
    try:
        check_op(op, dtype)
    except UsageError as error:
        return error.id
    return None


@pytest.mark.parametrize("dtype", ELEMENT_BYTES)
def test_every_type_has_the_reductions_of_its_kind(dtype):
    whole, has_no_order = dtype in INTEGERS, dtype in COMPLEX
    expected = {
        "sum": None, "prod": None, "product": None, "avg": WOULD_ROUND.id if whole else None,
        **dict.fromkeys(("max", "min"), NO_ORDER.id if has_no_order else None),
        **dict.fromkeys(("band", "bor", "bxor"), None if whole else INTEGERS_ONLY.id),
    }  # fmt: skip
    assert {op: rejection_of(op, dtype) for op in expected} == expected


@pytest.mark.parametrize("op", ["add", "SUM", "", None, ["sum"], 3])
def test_an_unknown_reduction_is_rejected_with_the_names_of_all_reductions(op):
    with pytest.raises(UsageError) as caught:
        check_op(op, "float32")
    assert caught.value.id == NO_SUCH_REDUCTION.id
    assert caught.value.parameters["names"] == "sum, prod, max, min, avg, band, bor, bxor"
    assert "归约运算" in caught.value.text("zh")


def test_an_alias_is_the_reduction_itself():
    assert check_op("product", "float32") == "prod"


def test_the_player_and_the_benchmark_have_the_reductions_of_the_table():
    assert list(COMBINES) == list(REDUCTIONS)
    assert set(OPS) <= set(REDUCTIONS)


@pytest.mark.parametrize("op", OPS)
def test_the_benchmark_tells_its_ranks_the_spellings_of_other_libraries(op):
    (case,) = make_cases(all_reduce, [64], "float32", op, 2)
    command = case.as_command()
    assert (command["torch_op"], command["mpi_op"]) == (REDUCTIONS[op].torch, REDUCTIONS[op].mpi)


def test_the_torch_spellings_are_those_of_torch():
    dist = pytest.importorskip("torch.distributed")
    from unisono.torch_backend.reductions import NAMES

    assert {name: getattr(dist.ReduceOp, REDUCTIONS[name].torch) for name in REDUCTIONS} == {
        name: kind for kind, name in NAMES.items()
    }


SIZE = 3
VALUES = {"integer": "int64", "floating-point": "float64"}  # a type of each kind that every backend supports


def reduce_everything(group):
    """Return the result of every reduction on every kind of type that has it, on one rank."""
    import torch

    results = {}
    for op in [*REDUCTIONS, "product"]:
        for kind, dtype in VALUES.items():
            if rejection_of(op, dtype) is None:
                mine = torch.arange(1, 2 * group.size + 1, dtype=getattr(torch, dtype)) + 10 * group.rank
                part = torch.zeros(2, dtype=mine.dtype)
                group.reduce_scatter(part, mine, op=op, name=op, phase="forward")
                whole = mine.clone()
                group.all_reduce(whole, op=op, name=op, phase="forward")
                later = mine.clone()
                group.all_reduce(later, op=op, name=op, phase="forward", async_op=True).wait()
                results[op, kind] = (whole.tolist(), later.tolist(), part.tolist())
            else:
                with pytest.raises(UsageError) as caught:
                    group.all_reduce(torch.ones(2, dtype=getattr(torch, dtype)), op=op, name=op, phase="forward")
                results[op, kind] = caught.value.id
    for call in (group.all_reduce, lambda x, **settings: group.reduce_scatter(x[:1].clone(), x, **settings)):
        with pytest.raises(UsageError) as caught:
            call(torch.ones(group.size), op="times", name="times", phase="forward")
        assert caught.value.id == NO_SUCH_REDUCTION.id
    return results


@pytest.mark.parametrize("kind", ["comm", "gloo", "unisono"])
def test_every_reduction_works_on_a_communicator_and_on_torch_groups(kind):
    pytest.importorskip("torch")
    from worlds import run_groups

    ufuncs = {
        "sum": np.add, "prod": np.multiply, "product": np.multiply, "max": np.maximum, "min": np.minimum,
        "avg": np.add, "band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor,
    }  # fmt: skip
    for rank, results in enumerate(run_groups(reduce_everything, SIZE, kind=kind)):
        assert len(results) == len(ufuncs) * len(VALUES)
        for (op, type_kind), result in results.items():
            rejection = rejection_of(op, VALUES[type_kind])
            if rejection is not None:
                assert result == rejection
                continue
            inputs = [np.arange(1, 2 * SIZE + 1, dtype=VALUES[type_kind]) + 10 * each for each in range(SIZE)]
            total = ufuncs[op].reduce(inputs) / (SIZE if op == "avg" else 1)
            expected = total.tolist()
            assert result == (expected, expected, expected[2 * rank : 2 * rank + 2]), (op, type_kind)


def test_every_type_has_a_kind():
    assert [kind_of(name) for name in ("uint16", "bool", "bfloat16", "float8_e5m2", "complex64")] == [
        "integer", "integer", "floating-point", "floating-point", "complex",
    ]  # fmt: skip
