"""The formats of the reference agree with other implementations and with the documentation."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arrays import bits, some_bits
from floats import of_every_kind, round_trip
from unisono import codecs
from unisono.codecs import reference
from unisono.codecs.formats import BLOCK, FORMATS

SCALED = [name for name, form in FORMATS.items() if form.block]
NUMPY = {
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp8_e4m3": ml_dtypes.float8_e4m3fn,
    "fp8_e5m2": ml_dtypes.float8_e5m2,
}


def rounded(values, name: str, **rounding) -> np.ndarray:
    return round_trip(np.asarray(values, np.float32), codecs.Codec(name, **rounding))


@pytest.mark.parametrize("name", NUMPY)
def test_numbers_are_rounded_like_those_of_numpy_and_ml_dtypes(name):
    values = of_every_kind(32_000)["random bits"]
    limit = FORMATS[name].limit
    values = np.where(
        np.abs(values) <= limit, values, np.float32(1.1)
    )  # beyond that they overflow, and codecs saturate
    if FORMATS[name].block:
        values[::BLOCK] = limit  # makes every scale 1
    found = reference.decode(reference.encode(values, name), name, len(values))
    assert bits(found) == bits(values.astype(NUMPY[name]).astype(np.float32))


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_every_16_bit_number_is_encoded_exactly(name):
    values = np.arange(65536, dtype=np.uint16).view(NUMPY[name]).astype(np.float32)
    found = rounded(values, name)
    assert np.array_equal(found, values, equal_nan=True)
    assert np.array_equal(np.signbit(found), np.signbit(values) & ~np.isnan(values))


@pytest.mark.parametrize("name", SCALED)
def test_encoding_a_decoded_wire_gives_the_same_bytes_for_every_scale_and_code(name):
    form = FORMATS[name]
    codes = np.arange(256, dtype=np.uint8)
    special = np.isnan(reference.decode(np.concatenate([np.full(8, 127, np.uint8), codes]), name, 256))
    codes = np.where(
        special | (codes == 0x80), 0, codes
    )  # encode never writes a NaN of the other sign, nor the -0 of int8
    # The smallest possible value of the largest code of a codec block, by the proof in wire.hpp: half of the number
    # after the limit.
    floor = {"fp8_e4m3": 240.0, "fp8_e5m2": 32768.0, "int8": 64.0}[name]
    numbers = reference.decode(np.concatenate([np.full(8, 127, np.uint8), codes]), name, 256)
    for top in codes[(numbers >= floor) & np.isfinite(numbers)]:
        blocks = np.where(np.abs(numbers) <= numbers[top], codes, 0).reshape(8, BLOCK).astype(np.uint8)
        blocks[:, 0] = top
        scales = np.repeat(np.arange(1, 255 - form.exponent, dtype=np.uint8), 8)
        wire = np.concatenate([scales, np.tile(blocks, (len(scales) // 8, 1)).reshape(-1)])
        n = len(scales) * BLOCK
        assert np.array_equal(codecs.encode(codecs.decode(wire, name, n), name), wire)


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(list(FORMATS)), n=st.integers(0, 100), seed=st.integers(0, 2**32),
    exponent=st.integers(-45, 38), stochastic=st.booleans(),
)  # fmt: skip
def test_a_second_encoding_changes_nothing(name, n, seed, exponent, stochastic):
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        near = (rng.standard_normal(n) * 10.0**exponent).astype(np.float32)
    values = np.where(rng.random(n) < 0.9, near, some_bits("float32", n, rng))
    codec = codecs.Codec(name, stochastic=stochastic, seed=seed)
    wire = codecs.encode(values, codec)
    once = codecs.decode(wire, name, n)
    for again in (codec, codecs.Codec(name), codecs.Codec(name, stochastic=True, seed=seed + 1)):
        assert bits(codecs.decode(codecs.encode(once, again), name, n)) == bits(once)
    if not stochastic:
        assert np.array_equal(codecs.encode(once, name), wire)


@pytest.mark.parametrize("name", FORMATS)
def test_infinity_and_nan_never_become_finite_and_do_not_affect_their_neighbours(name):
    values = np.linspace(-1, 1, 64, dtype=np.float32)
    clean = rounded(values, name)
    values[[3, 4, 40]] = np.inf, -np.inf, np.nan
    found = rounded(values, name)
    expected = [np.inf, -np.inf, np.nan] if FORMATS[name].infinite else [np.nan] * 3
    assert np.array_equal(found[[3, 4, 40]], np.float32(expected), equal_nan=True)
    others = np.setdiff1d(np.arange(64), [3, 4, 40])
    assert bits(found[others]) == bits(clean[others])


@pytest.mark.parametrize("stochastic", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_numbers_that_are_too_large_become_the_largest_number(name, stochastic):
    largest = np.finfo(np.float32).max
    found = rounded([largest, -largest, 1e38, 1.0], name, stochastic=stochastic)
    limit = np.float32(FORMATS[name].largest)
    assert np.array_equal(found[:2], [limit, -limit])
    assert np.isfinite(found).all()
    if name != "fp16":  # its largest number is 65504
        assert abs(found[2] / 1e38 - 1) <= 0.25


@pytest.mark.parametrize("name", FORMATS)
def test_zeros_stay_zeros_and_keep_their_sign_in_formats_with_signed_zeros(name):
    found = rounded([0.0, -0.0], name)
    assert np.array_equal(found, [0, 0])
    assert list(np.signbit(found)) == [False, name != "int8"]


def test_the_limits_of_the_formats_agree_with_the_documentation():
    assert FORMATS["fp16"].largest == 65504
    assert FORMATS["fp8_e4m3"].largest == FORMATS["fp8_e5m2"].largest == 1.75 * 2.0**127
    assert FORMATS["int8"].largest == 127 * 2.0**121
    assert FORMATS["bf16"].largest == float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
