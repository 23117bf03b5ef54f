"""The reductions of the kernel have the bits of the engine's loops, for every type and all special values.

The functions are compiled for the host. On the GPU the same source is compiled without contraction of products and
sums; only conversions of float16 are instructions there.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from arrays import DTYPES, MEANINGFUL, MEANINGLESS, bits, dtype_of, some_bits, some_numbers
from gpu.host_kernel import built
from unisono import _engine

OPS = ("sum", "prod", "max", "min", "band", "bor", "bxor")
FLOATS = [name for name in DTYPES if dtype_of(name).kind not in "iub"]


@cache
def library() -> ctypes.CDLL:
    found = ctypes.CDLL(str(built(Path(__file__).parent / "reduction_check.cpp", "-O1")))
    found.combine_vectors.restype = found.divide_vectors.restype = ctypes.c_bool
    return found


def combined(op: str, name: str, arrays: list[np.ndarray]) -> np.ndarray | None:
    out = np.empty_like(arrays[0])
    sources = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    vectors = ctypes.c_uint64(out.nbytes // 16)
    defined = library().combine_vectors(
        OPS.index(op), DTYPES.index(name), ctypes.c_void_p(out.ctypes.data), sources, len(arrays), vectors
    )
    return out if defined else None


def by_the_engine(op: str, name: str, arrays: list[np.ndarray]) -> np.ndarray:
    out, also = np.empty_like(arrays[0]), np.empty_like(arrays[0])
    first, *addends = (array.view(np.uint8) for array in arrays)
    _engine.combine_many(op, name, out.view(np.uint8), also.view(np.uint8), first, addends, "")
    return out


def every_pair(name: str) -> list[np.ndarray]:
    """Return two arrays that contain every pair of some values; of types of 8 bits, every pair of all values."""
    dtype = dtype_of(name)
    if dtype.itemsize == 1:
        values = np.arange(2 if name == "bool" else 256, dtype=np.uint8).view(dtype)
    else:
        rng = np.random.default_rng(7)
        values = np.concatenate([some_bits(name, 96, rng), some_numbers(name, 96, rng)])
    left, right = (array.ravel() for array in np.meshgrid(values, values))
    whole = -(-left.size // 16) * 16  # elements of whole vectors
    return [np.ascontiguousarray(np.resize(array, whole)) for array in (left, right)]


@pytest.mark.parametrize(("op", "name"), MEANINGFUL)
def test_two_elements_are_combined_as_by_the_engine(op, name):
    arrays = every_pair(name)
    out = combined(op, name, arrays)
    assert out is not None
    assert bits(out) == bits(by_the_engine(op, name, arrays))


@pytest.mark.parametrize(("op", "name"), MEANINGFUL)
@pytest.mark.parametrize("count", [3, 8, 13])
def test_several_arrays_are_combined_in_order_and_rounded_once(op, name, count):
    rng = np.random.default_rng(count)
    for some in (some_bits, some_numbers):
        arrays = [some(name, 4096, rng) for _ in range(count)]
        out = combined(op, name, arrays)
        assert out is not None
        assert bits(out) == bits(by_the_engine(op, name, arrays)), some


@pytest.mark.parametrize(("op", "name"), MEANINGLESS)
def test_the_kernel_has_the_reductions_that_the_engine_has(op, name):
    assert combined(op, name, [np.zeros(16, dtype_of(name))]) is None


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7, 8, 13, 64])
def test_an_average_is_divided_as_by_the_engine(name, size):
    rng = np.random.default_rng(size)
    arrays = [some(name, 4096, rng) for some in (some_bits, some_numbers) for _ in range(2)]
    total = np.concatenate([by_the_engine("sum", name, arrays[:2]), by_the_engine("sum", name, arrays[2:])])
    out, wanted = np.empty_like(total), np.empty_like(total)
    defined = library().divide_vectors(
        DTYPES.index(name),
        ctypes.c_void_p(out.ctypes.data),
        ctypes.c_void_p(total.ctypes.data),
        size,
        ctypes.c_uint64(out.nbytes // 16),
    )
    assert defined
    _engine.divide(name, wanted.view(np.uint8), total.view(np.uint8), size, "")
    assert bits(out) == bits(wanted)
