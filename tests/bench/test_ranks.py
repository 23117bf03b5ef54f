"""The test vectors of the ranks detect wrong results and accept right ones."""

from __future__ import annotations

import numpy as np
import pytest

from unisono.bench.cases import ITEM_BYTES, OPS
from unisono.bench.standalone.ranks.buffers import ROOT, Buffers
from unisono.bench.standalone.ranks.patterns import PERIOD, encode, pattern, reduced, stretch

SIZES = (1, 2, 3, 5, 6, 7, 8, 13)
COLLECTIVES = (
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "reduce", "gather", "scatter",
)  # fmt: skip
WAYS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def group(collective, size, count=None, dtype="float32", op="sum"):
    """Return the buffers of all ranks, filled."""
    command = {"collective": collective, "count": count or 4 * size, "dtype": dtype, "op": op}
    made = [Buffers(command, rank, size) for rank in range(size)]
    for buffers in made:
        buffers.fill()
    return made


def carry_out(made):
    """Perform the collective in the simplest way."""
    collective, size, op = made[0].collective, made[0].size, made[0].op
    given = [buffers.given.copy() for buffers in made]
    block = made[0].block
    if collective in ("all_reduce", "reduce", "reduce_scatter"):
        total = WAYS[op].reduce(given)
        for rank, buffers in enumerate(made):
            mine = total[rank * block : (rank + 1) * block] if collective == "reduce_scatter" else total
            buffers.got[:] = mine
    elif collective == "broadcast":
        for buffers in made:
            buffers.got[:] = given[ROOT]
    elif collective == "scatter":
        for rank, buffers in enumerate(made):
            buffers.got[:] = given[ROOT][rank * block : (rank + 1) * block]
    elif collective == "all_to_all":
        for rank, buffers in enumerate(made):
            buffers.got[:] = np.concatenate([each[rank * block : (rank + 1) * block] for each in given])
    else:
        for buffers in made if collective == "all_gather" else made[:1]:
            buffers.got[:] = np.concatenate(given)
    assert len(made) == size


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_a_correct_result_has_no_wrong_elements(collective, size):
    made = group(collective, size)
    carry_out(made)
    assert [buffers.wrong() for buffers in made] == [0] * size


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_wrong_element_is_counted(collective):
    made = group(collective, 3)
    carry_out(made)
    made[ROOT].got[1] += 1
    made[ROOT].got[-1] += 1
    assert made[ROOT].wrong() == 2


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_a_collective_that_does_nothing_is_detected(collective):
    made = group(collective, 3, count=300)
    assert sum(buffers.wrong() for buffers in made) > 0


def test_a_chunk_at_a_wrong_position_is_detected():
    made = group("all_gather", 2, count=1 << 18)
    carry_out(made)
    swapped = made[0].got.reshape(2, -1)[::-1].ravel()
    made[0].got[:] = swapped
    assert made[0].wrong() > 1 << 17


@pytest.mark.parametrize("op", [op for op in OPS if op != "avg"])
@pytest.mark.parametrize("dtype", [each for each in ITEM_BYTES if each != "bfloat16"])
def test_reductions_are_exact_in_every_type(dtype, op):
    for size in SIZES:
        made = group("all_reduce", size, count=1000, dtype=dtype, op=op)
        carry_out(made)
        assert made[-1].wrong() == 0


def test_values_are_exact_in_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for size in SIZES:
        for op in OPS:
            total = reduced(size, op)
            assert total.max() <= 256
            assert (encode(total, "bfloat16").view(ml_dtypes.bfloat16).astype(np.int64) == total).all()


@pytest.mark.parametrize("size", SIZES)
def test_an_average_is_an_integer(size):
    assert (sum(pattern(rank, size, "avg") for rank in range(size)) == reduced(size, "avg") * size).all()


def test_consecutive_ranges_of_values_continue_each_other():
    period = pattern(0, 2, "sum")
    whole = stretch(period, 0, 3 * PERIOD)
    assert (stretch(period, PERIOD + 5, 1000) == whole[PERIOD + 5 : PERIOD + 1005]).all()
    assert (stretch(period, PERIOD - 5, PERIOD) == whole[PERIOD - 5 : 2 * PERIOD - 5]).all()


def test_collectives_work_in_place_where_possible():
    in_place = {name for name in COLLECTIVES if group(name, 2)[0].given is group(name, 2)[0].got}
    assert in_place == set()
    for name in COLLECTIVES:
        buffers = group(name, 2)[1]
        assert (buffers.given is buffers.got) == (name in ("all_reduce", "broadcast", "reduce")), name
