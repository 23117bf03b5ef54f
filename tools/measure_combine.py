"""Measure how fast the engine's loops add arrays that fit into the cache, beside numpy, in one run."""

from __future__ import annotations

import time

import ml_dtypes
import numpy as np

from unisono import _engine

ARRAY_BYTES = 256 * 1024
REPEATS = 50
NAMES = ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "int32", "complex64")


def best(action) -> float:
    """Return the bytes of one array per second, in GB/s, of the quickest of many runs."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return ARRAY_BYTES / min(times) / 1e9


print(f"instructions: {_engine.build_info()['instructions']}, sum, {ARRAY_BYTES // 1024} KiB, one core")
print("| type | engine GB/s | numpy GB/s | ratio |")
print("|---|--:|--:|--:|")
for name in NAMES:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    left = np.random.default_rng(0).standard_normal(ARRAY_BYTES // dtype.itemsize).astype(dtype)
    right, out = left.copy(), np.empty_like(left)
    views = [array.view(np.uint8) for array in (out, left, right)]
    ours = best(lambda name=name, views=views: _engine.combine("sum", name, *views))
    numpys = best(lambda left=left, right=right, out=out: np.add(left, right, out=out))
    print(f"| {name} | {ours:.1f} | {numpys:.1f} | {ours / numpys:.1f} |")
