"""Top-k of the GPU, compiled for the host, gives the bits of the engine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import device_coding
from arrays import bits, some_bits
from floats import of_every_kind
from unisono import codecs
from unisono.codecs.topk import add_pieces


def assert_same(values: np.ndarray, fraction: str, blocks: int = 3) -> None:
    codec = codecs.find(f"topk:{fraction}")
    wire, k = codecs.encode(values, codec), codec.kept(values.size)
    assert np.array_equal(device_coding.encode_topk(values, k, blocks), wire)
    found, valid = device_coding.add_topk(wire, values.size, k, 1)
    assert valid
    assert bits(found) == bits(codecs.decode(wire, codec, values.size))


@pytest.mark.parametrize("fraction", ["0.00001", "0.01", "0.5", "1"])
def test_arrays_of_every_kind_have_the_same_wire(fraction):
    for values in of_every_kind(140_003).values():
        assert_same(values, fraction)


@settings(max_examples=100, deadline=None)
@given(
    n=st.integers(1, 300), per_mille=st.integers(1, 1000), seed=st.integers(0, 2**32), few=st.booleans(),
    blocks=st.integers(1, 5),
)  # fmt: skip
def test_any_length_with_many_equal_elements_has_the_same_wire(n, per_mille, seed, few, blocks):
    rng = np.random.default_rng(seed)
    values = rng.integers(-2, 3, n).astype(np.float32) if few else some_bits("float32", n, rng)
    assert_same(values, str(per_mille / 1000), blocks)


@pytest.mark.parametrize("n", [8191, 8192, 8193, 65535, 65536, 65537, 131_072 + 8193])
@pytest.mark.parametrize("fraction", ["0.3", "1"])
@pytest.mark.parametrize("value", [0.0, -2.5, np.nan, 1e-40])
def test_of_equal_elements_the_first_are_kept(n, fraction, value):
    assert_same(np.full(n, value, np.float32), fraction)


def test_elements_that_differ_in_the_last_bits_only_are_told_apart():
    values = (np.random.default_rng(1).permutation(100_000).astype(np.uint32) + 0x3F800000).view(np.float32)
    assert_same(values, "0.0137")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7, 8, 13, 70])
@pytest.mark.parametrize("op", ["sum", "avg"])
def test_the_pieces_of_all_ranks_are_added_in_their_order(size, op):
    n, codec = 66_000, codecs.find("topk:0.01")
    rng = np.random.default_rng(size)
    with np.errstate(all="ignore"):
        inputs = [
            some_bits("float32", n, rng) if rank % 3 == 0 else of_every_kind(n, rank)["normal"]
            for rank in range(size)
        ]
        pieces = np.concatenate([codecs.encode(values, codec) for values in inputs])
        expected = np.empty(n, np.float32)
        add_pieces(expected, pieces, codec, size, op)
    found, valid = device_coding.add_topk(pieces, n, codec.kept(n), size, float(size) if op == "avg" else 1.0)
    assert valid
    assert bits(found) == bits(expected)


@pytest.mark.parametrize(("at", "value"), [(0, 700), (4, 0), (8, 0xFFFF), (8, 40_000)])
def test_an_invalid_wire_is_reported_and_touches_nothing_else(at, value):
    """Counts that are too large or too small, and positions past the end of the window or of the array."""
    n, codec = 100_000, codecs.find("topk:0.01")
    wire = codecs.encode(of_every_kind(n)["normal"], codec)
    width = np.uint32 if at < 8 else np.uint16
    if at == 8:
        at += 2 * (codec.kept(n) - 1)  # the last position
    wire[at : at + np.dtype(width).itemsize] = np.array([value], width).view(np.uint8)
    assert not device_coding.add_topk(wire, n, codec.kept(n), 1)[1]
