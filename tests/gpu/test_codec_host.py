"""The codecs of the GPU, compiled for the host, give the bits of the reference and of the engine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import device_coding
from arrays import bits, some_bits
from floats import of_every_kind
from unisono import codecs
from unisono.codecs import Codec, reference
from unisono.codecs.formats import BLOCK, FORMATS

SCALED = [name for name, form in FORMATS.items() if form.block]
LENGTHS = [0, 1, 2, 3, 4, 5, 31, 32, 33, 63, 65, 100, 2047, 2048, 2049, 8192 + 17]
CODECS = [Codec(name, stochastic=stochastic, seed=2**40 + 7) for name in FORMATS for stochastic in (False, True)]
SOME = pytest.mark.parametrize("codec", CODECS, ids=str)


def assert_same(values: np.ndarray, codec: Codec) -> None:
    """Compare everything that the device does with an array with the reference and the engine."""
    wire = codecs.encode(values, codec)
    expected = reference.encode(values, codec.name, stochastic=codec.stochastic, seed=codec.seed)
    assert np.array_equal(wire, expected)
    assert np.array_equal(device_coding.encode(values, codec), wire)
    decoded = codecs.decode(wire, codec, values.size)
    assert bits(device_coding.decode(wire, codec, values.size)) == bits(decoded)
    found, rounded = device_coding.encode_rounding_source(values, codec)
    assert np.array_equal(found, wire)
    assert bits(rounded) == bits(decoded)
    assert bits(device_coding.round_only(values, codec)) == bits(decoded)


@SOME
def test_arrays_of_every_kind_have_the_same_bits(codec):
    for values in of_every_kind(3_000).values():
        assert_same(values, codec)


@SOME
@pytest.mark.parametrize("n", LENGTHS)
def test_any_length_has_the_same_bits(codec, n):
    assert_same(some_bits("float32", n, np.random.default_rng(n)), codec)


@settings(max_examples=60, deadline=None)
@given(
    codec=st.sampled_from(CODECS), n=st.integers(0, 200), seed=st.integers(0, 2**32), exponent=st.integers(-45, 38)
)
def test_random_arrays_have_the_same_bits(codec, n, seed, exponent):
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        near = (rng.standard_normal(n) * 10.0**exponent).astype(np.float32)
    assert_same(np.where(rng.random(n) < 0.05, some_bits("float32", n, rng), near), codec)


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_every_16_bit_code_is_decoded_and_rounded_alike(name):
    """The elements are all decoded numbers, the middle between each two neighbours, and the floats next to these."""
    codec = Codec(name)
    codes = np.arange(65536, dtype=np.uint16)
    numbers = codecs.decode(codes.view(np.uint8), codec, codes.size)
    assert bits(device_coding.decode(codes.view(np.uint8), codec, codes.size)) == bits(numbers)
    finite = np.sort(numbers[np.isfinite(numbers)])
    middle = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
    near = [np.nextafter(middle, np.float32(side)) for side in (-np.inf, np.inf)]
    for values in (numbers, middle, *near):
        assert_same(values, codec)


@pytest.mark.parametrize("name", SCALED)
def test_every_scale_with_every_code_is_decoded_and_rounded_alike(name):
    codec = Codec(name)
    scales = np.arange(1, 255 - FORMATS[name].exponent, dtype=np.uint8)
    codes = np.tile(np.arange(256, dtype=np.uint8), scales.size)
    wire = np.concatenate([np.repeat(scales, 256 // BLOCK), codes])
    numbers = codecs.decode(wire, codec, codes.size)
    assert bits(device_coding.decode(wire, codec, codes.size)) == bits(numbers)
    assert_same(numbers, codec)


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_around_every_power_of_two_are_rounded_alike(name):
    """Next to the limits of a scale a codec block gets the next one, so each of these is first in its block."""
    codec = Codec(name)
    limit = np.array([FORMATS[name].limit], np.float32).view(np.uint32) & 0x7FFFFF
    exponents = np.arange(256, dtype=np.uint32) << 23
    half_steps = np.arange(-2, 3).astype(np.uint32) + np.uint32(1 << 19)
    mantissas = np.concatenate([limit + half_steps - np.uint32(1 << 19), limit + half_steps, [0, 1, 0x7FFFFF]])
    first = (exponents[:, None] + (mantissas & 0x7FFFFF)[None, :].astype(np.uint32)).reshape(-1)
    blocks = np.zeros((first.size, BLOCK), np.uint32)
    blocks[:, 0] = first
    blocks[:, 1] = first // 2 ^ np.uint32(1 << 31)
    blocks[:, 31] = first - np.minimum(first, 1 << 22)
    assert_same(blocks.reshape(-1).view(np.float32), codec)


@pytest.mark.parametrize("name", FORMATS)
def test_random_bits_depend_on_the_index_of_an_element_only(name):
    codec = Codec(name, stochastic=True, seed=5)
    values = of_every_kind(96)["normal"]
    expected = reference.encode(values, name, stochastic=True, seed=5, first=2**32 - 40)
    assert np.array_equal(device_coding.encode(values, codec, first=2**32 - 40), expected)
