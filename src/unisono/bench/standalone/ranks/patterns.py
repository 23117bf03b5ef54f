"""Test vectors: small integers, whose reductions are exact in every type and order."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

# The period of the patterns: a prime, so that a chunk at a wrong position is detected.
PERIOD = 65_521
# Integers up to here are exact in every type, bfloat16 included.
LARGEST_EXACT = 256
# The type that numpy stores elements as; it has no bfloat16, so we make and compare the bits.
STORED = {
    "float32": np.float32, "float64": np.float64, "float16": np.float16, "bfloat16": np.uint16,
    "int32": np.int32, "int64": np.int64,
}  # fmt: skip


def encode(integers: np.ndarray, dtype: str) -> np.ndarray:
    """Return small integers as elements of a type."""
    if dtype == "bfloat16":  # the upper half of a float32
        return (integers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return integers.astype(STORED[dtype])


def pattern(rank: int, size: int, op: str) -> np.ndarray:
    """Return one period of a rank's test vector, as integers whose reduction over all ranks is exact."""
    index = np.arange(PERIOD, dtype=np.uint64)
    if op == "prod":
        return np.where(index % size == rank, 2, 1).astype(np.int64)
    scrambled = (index * np.uint64(2_654_435_761) + np.uint64(40_503 * (rank + 1))) >> np.uint64(11)
    step = size if op == "avg" else 1  # multiples of size, so that the average is an integer
    values = max(2, min(8, LARGEST_EXACT // (size * step) + 1))
    return (scrambled % np.uint64(values)).astype(np.int64) * step


def reduced(size: int, op: str) -> np.ndarray:
    """Return one period of the reduction of all test vectors."""
    patterns = [pattern(rank, size, op) for rank in range(size)]
    ways: dict[str, Callable[..., np.ndarray]] = {
        "sum": np.add, "avg": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
    }  # fmt: skip
    total = functools.reduce(ways[op], patterns)
    return total // size if op == "avg" else total


def stretch(period: np.ndarray, start: int, count: int) -> np.ndarray:
    """Return elements start to start + count of the pattern that goes on for ever."""
    return np.resize(np.roll(period, -(start % PERIOD)), count)
