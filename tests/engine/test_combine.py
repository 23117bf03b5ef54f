"""The reduction loops give the bits of the player, for every type, reduction and instruction set."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arrays import MEANINGFUL, MEANINGLESS, bits, dtype_of, some_bits
from unisono import _engine
from unisono.player.reduction import combining


def engine(op: str, name: str, left: np.ndarray, right: np.ndarray, variant: str = "") -> np.ndarray:
    out = np.empty_like(left)
    _engine.combine(op, name, *(array.view(np.uint8) for array in (out, left, right)), variant)
    return out


@pytest.mark.parametrize("variant", _engine.variants())
@pytest.mark.parametrize(("op", "name"), MEANINGFUL)
def test_the_engine_gives_the_bits_of_the_player(op, name, variant):
    dtype, rng = dtype_of(name), np.random.default_rng(0)
    if dtype.itemsize == 1 and name != "bool":  # all pairs
        values = np.arange(256, dtype=np.uint8).view(dtype)
        left, right = np.repeat(values, 256), np.tile(values, 256)
    else:
        left, right = some_bits(name, 20_000, rng), some_bits(name, 20_000, rng)
    assert bits(engine(op, name, left, right, variant)) == bits(combining(op, dtype)(left, right))


@pytest.mark.parametrize("variant", _engine.variants())
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_sums_of_finite_8_bit_floats_which_have_a_fast_loop(name, variant):
    dtype = dtype_of(name)
    values = np.arange(256, dtype=np.uint8).view(dtype)
    values = values[np.isfinite(values)]
    left, right = np.repeat(values, len(values)), np.tile(values, len(values))
    # In this order most lanes have only finite sums; lanes with an infinite sum are added by the general loop.
    order = np.argsort(np.abs(left.astype(np.float32) + right.astype(np.float32)), kind="stable")
    left, right = left[order], right[order]
    assert bits(engine("sum", name, left, right, variant)) == bits(combining("sum", dtype)(left, right))


@pytest.mark.parametrize(("op", "name"), MEANINGFUL)
def test_exchanging_the_two_sides_gives_the_same_bits(op, name):
    rng = np.random.default_rng(1)
    left, right = some_bits(name, 5_000, rng), some_bits(name, 5_000, rng)
    assert bits(engine(op, name, left, right)) == bits(engine(op, name, right, left))


@settings(max_examples=100, deadline=None)
@given(
    case=st.sampled_from(MEANINGFUL), length=st.integers(0, 700), seed=st.integers(0, 2**32),
    place=st.sampled_from(["left", "right", "apart"]),
)  # fmt: skip
def test_any_length_and_the_result_may_overwrite_a_side(case, length, seed, place):
    op, name = case
    rng = np.random.default_rng(seed)
    left, right = some_bits(name, length, rng), some_bits(name, length, rng)
    wanted = bits(combining(op, dtype_of(name))(left, right))
    out = {"left": left, "right": right, "apart": np.empty_like(left)}[place]
    _engine.combine(op, name, *(array.view(np.uint8) for array in (out, left, right)), "")
    assert bits(out) == wanted


@pytest.mark.parametrize(("op", "name"), MEANINGLESS)
def test_reductions_that_the_player_rejects_are_rejected(op, name):
    with pytest.raises(ValueError, match=f"{op} has no meaning for {name}"):
        engine(op, name, np.zeros(4, dtype_of(name)), np.zeros(4, dtype_of(name)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plus", "float32", 4, 4, 4, ""), "there is no reduction 'plus'; expected one of sum, prod"),
        (("sum", "float", 4, 4, 4, ""), "there is no dtype 'float'; expected one of float32"),
        (("sum", "float32", 4, 8, 4, ""), "expected three arrays of equal length"),
        (("sum", "float32", 6, 6, 6, ""), "in whole elements"),
        (("sum", "float32", 4, 4, 4, "abacus"), "there is no variant 'abacus'"),
    ],
)
def test_invalid_arguments_are_rejected(arguments, message):
    op, name, *lengths = arguments
    arrays = [np.zeros(length, np.uint8) if isinstance(length, int) else length for length in lengths]
    with pytest.raises(ValueError, match=message):
        _engine.combine(op, name, *arrays)


def test_every_processor_can_run_the_baseline():
    assert _engine.variants()[-1] == "baseline"
    assert _engine.build_info()["instructions"] == _engine.variants()[0]
