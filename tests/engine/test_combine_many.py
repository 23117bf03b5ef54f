"""Several arrays are added in one sweep: in order, in float for smaller types, and rounded once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arrays import MEANINGFUL, MEANINGLESS, SMALL, at_offset, bits, dtype_of, some_bits, some_numbers
from unisono import _engine
from unisono.player.reduction import combining


def reference(op: str, name: str, arrays: list[np.ndarray]) -> np.ndarray:
    dtype = dtype_of(name)
    wide = np.dtype(np.float32) if name in SMALL else dtype
    total = arrays[0].astype(wide)
    for array in arrays[1:]:
        total = combining(op, wide)(total, array.astype(wide))
    if dtype.kind in "iub":
        return total
    with np.errstate(all="ignore"):
        narrow = total.astype(dtype)
    return np.where(np.isnan(narrow), np.asarray(np.nan, dtype), narrow) if name in SMALL else narrow


def engine(op: str, name: str, arrays: list[np.ndarray], variant: str = "") -> np.ndarray:
    out, also = np.empty_like(arrays[0]), np.empty_like(arrays[0])
    first, *addends = (array.view(np.uint8) for array in arrays)
    _engine.combine_many(op, name, out.view(np.uint8), also.view(np.uint8), first, addends, variant)
    assert bits(out) == bits(also)
    return out


@pytest.mark.parametrize("variant", _engine.variants())
@pytest.mark.parametrize(("op", "name"), MEANINGFUL)
def test_the_bits_are_those_of_single_additions_in_order(op, name, variant):
    rng = np.random.default_rng(0)
    for addends in (1, 2, 3, 7):
        for some in (some_bits, some_numbers):
            arrays = [some(name, 5_003, rng) for _ in range(addends + 1)]
            assert bits(engine(op, name, arrays, variant)) == bits(reference(op, name, arrays)), (addends, some)


@pytest.mark.parametrize("variant", _engine.variants())
@pytest.mark.parametrize("name", ["float32", *SMALL, "complex64"])
def test_the_largest_number_of_addends(name, variant):
    rng = np.random.default_rng(1)
    arrays = [some_numbers(name, 3_001, rng) for _ in range(64)]
    assert bits(engine("sum", name, arrays, variant)) == bits(reference("sum", name, arrays))


@pytest.mark.parametrize("variant", _engine.variants())
@pytest.mark.parametrize("name", SMALL)
def test_small_numbers_are_rounded_once(name, variant):
    # 1 + h + h where h is half of the last place of 1: each sum of two would be rounded to 1.
    dtype = dtype_of(name)
    last_place = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float8_e4m3fn": 2.0**-3, "float8_e5m2": 2.0**-2}[name]
    half = np.full(5, last_place / 2).astype(dtype)
    one = np.ones(5, dtype)
    assert np.all(engine("sum", name, [one, half, half], variant).astype(float) == 1 + last_place)
    assert np.all(engine("sum", name, [engine("sum", name, [one, half], variant), half], variant) == one)


@settings(max_examples=200, deadline=None)
@given(
    case=st.sampled_from(MEANINGFUL), variant=st.sampled_from(_engine.variants()),
    length=st.one_of(st.integers(0, 700), st.integers(0, 6000)),
    addends=st.integers(1, 9), offsets=st.lists(st.integers(0, 63), min_size=12, max_size=12),
    place=st.sampled_from(["first", "last addend", "apart"]), also=st.booleans(), seed=st.integers(0, 2**32),
)  # fmt: skip
def test_any_length_number_of_addends_and_address(case, variant, length, addends, offsets, place, also, seed):
    op, name = case
    rng = np.random.default_rng(seed)
    arrays = [some_numbers(name, length, rng) for _ in range(addends + 1)]
    wanted = bits(reference(op, name, arrays))
    first, *rest = (at_offset(array, offset) for array, offset in zip(arrays, offsets, strict=False))
    apart, copy = at_offset(arrays[0], offsets[-1]), at_offset(arrays[0], offsets[-2])
    out = {"first": first, "last addend": rest[-1], "apart": apart}[place]
    _engine.combine_many(op, name, out, copy if also else None, first, rest, variant)
    assert out.tobytes() == wanted
    assert not also or copy.tobytes() == wanted


@pytest.mark.parametrize(("op", "name"), MEANINGLESS)
def test_reductions_that_are_rejected_for_two_arrays_are_rejected_for_many(op, name):
    array = np.zeros(16, np.uint8)
    with pytest.raises(ValueError, match=f"{op} has no meaning for {name}"):
        _engine.combine_many(op, name, array, None, array, [array], "")


@pytest.mark.parametrize(("also", "first", "addends"), [(4, 4, []), (4, 8, [4]), (8, 4, [4]), (None, 4, [4, 8])])
def test_invalid_arguments_are_rejected(also, first, addends):
    def zeros(length: int) -> np.ndarray:
        return np.zeros(length, np.uint8)

    with pytest.raises(ValueError, match="expected at least one addend, and arrays of equal length"):
        _engine.combine_many(
            "sum", "float32", zeros(4), also and zeros(also), zeros(first), [zeros(n) for n in addends], ""
        )
