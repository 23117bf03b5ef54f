"""Measure how fast the engine's loops and numpy add arrays that fit into the cache, in one run.

GB/s are the bytes of one array, the result, per second, including the call from Python, about 0.7 microseconds, which
matters for the smaller arrays. Arguments name the instruction sets to measure (`_engine.variants()`); the default is
the best one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import ml_dtypes
import numpy as np

import timing
from unisono import _engine

ARRAY_BYTES = (32 * 1024, 256 * 1024)
ADDENDS = 3
REPEATS = 300
NAMES = (
    "float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int32", "complex64",
)  # fmt: skip


def best(size: int, action: Callable[[], object]) -> float:
    """Return the bytes of one array per second, in GB/s, of the fastest of many executions."""
    return size / timing.fastest(action, REPEATS) / 1e9


def measured(name: str, size: int, variant: str) -> list[float]:
    """Return the speeds of a sum of two arrays, of more, of a division, and of numpy's sum of two."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(size // dtype.itemsize).astype(dtype) for _ in range(ADDENDS + 1)]
    out = np.empty_like(arrays[0])
    to, first, *rest = (array.view(np.uint8) for array in (out, *arrays))
    speeds = [
        best(size, lambda: _engine.combine("sum", name, to, first, rest[0], variant)),
        best(size, lambda: _engine.combine_many("sum", name, to, None, first, rest, variant)),
        best(size, lambda: _engine.divide(name, to, first, 3, variant)) if dtype.kind not in "iu" else 0,
    ]
    return [*speeds, best(size, lambda: np.add(arrays[0], arrays[1], out=out))]


if __name__ == "__main__":
    for variant in sys.argv[1:] or _engine.variants()[:1]:
        for size in ARRAY_BYTES:
            print(f"\ninstructions: {variant}, {size // 1024} KiB, one core, GB/s")
            print(f"| type | sum of 2 | sum of {ADDENDS + 1} | divide | numpy, sum of 2 | engine / numpy |")
            print("|---|--:|--:|--:|--:|--:|")
            for name in NAMES:
                speeds = measured(name, size, variant)
                columns = " | ".join(f"{speed:.1f}" if speed else "-" for speed in speeds)
                print(f"| {name} | {columns} | {speeds[0] / speeds[-1]:.1f} |")
