"""Arrays of every dtype for the tests of the engine, including all special values."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from unisono.errors import UsageError
from unisono.player.reduction import COMBINES, combining

DTYPES = [
    "float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128",
]  # fmt: skip
SMALL = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
REDUCTIONS = [op for op in COMBINES if op != "avg"]


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def has_meaning(op: str, name: str) -> bool:
    try:
        combining(op, dtype_of(name))
    except UsageError:
        return False
    return True


MEANINGFUL = [(op, name) for op in REDUCTIONS for name in DTYPES if has_meaning(op, name)]
MEANINGLESS = [(op, name) for op in REDUCTIONS for name in DTYPES if not has_meaning(op, name)]


def some_bits(name: str, length: int, rng: np.random.Generator) -> np.ndarray:
    """Return elements with random bits, including NaN, infinities, subnormal numbers and zeros of both signs."""
    dtype = dtype_of(name)
    if name == "bool":
        return rng.integers(0, 2, length).astype(bool)
    values = rng.integers(0, 256, length * dtype.itemsize, dtype=np.uint8).view(dtype)
    special = np.array([0, 1], dtype) if dtype.kind in "iu" else np.array([0.0, -0.0, 1.0, np.nan, np.inf], dtype)
    chosen = rng.integers(0, 8, length)
    return np.where(chosen < len(special), special[np.minimum(chosen, len(special) - 1)], values).astype(dtype)


def some_numbers(name: str, length: int, rng: np.random.Generator) -> np.ndarray:
    """Return finite numbers: some with any exponent, some subnormal, and some of similar magnitude."""
    if dtype_of(name).kind in "iub":
        return some_bits(name, length, rng)
    with np.errstate(all="ignore"):
        near = rng.standard_normal(length).astype(dtype_of(name))
        tiny = near * np.finfo(np.float32).tiny if name.endswith(("32", "64", "bfloat16")) else near / 1024
        wild = some_bits(name, length, rng)
        choice = rng.integers(0, 8, length)
        values = np.where(choice == 0, wild, np.where(choice == 1, tiny.astype(dtype_of(name)), near))
        return np.where(np.isfinite(values), values, near)


def at_offset(array: np.ndarray, offset: int) -> np.ndarray:
    """Return the bytes of an array at an address that is ``offset`` bytes past a multiple of 64."""
    memory = np.empty(array.nbytes + 64 + offset, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    view = memory[start : start + array.nbytes]
    view[:] = array.view(np.uint8)
    return view


def bits(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array).tobytes()
