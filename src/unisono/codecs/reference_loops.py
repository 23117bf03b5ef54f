"""The loops of the engine that ``coding`` calls, in numpy, for installations without the engine.

They have the parameters of those in ``_engine.pyi``; all arrays are given as bytes, and ``variant``, which selects
the instructions of a processor, has no effect.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unisono.codecs import reference

Bytes = NDArray[np.uint8]

WINDOW = 1 << 16  # elements in which top-k counts positions (engine/include/unisono/topk.hpp)


def encode(codec: str, out: Bytes, array: Bytes, stochastic: bool, seed: int, first: int, variant: str) -> None:
    """Write the wire of an array to ``out``."""
    out[:] = reference.encode(array.view(np.float32), codec, stochastic=stochastic, seed=seed, first=first)


def encode_rounding_source(
    codec: str, out: Bytes, source: Bytes, stochastic: bool, seed: int, first: int, variant: str
) -> None:
    """Write the wire to ``out``; the source becomes what ``decode`` returns."""
    encode(codec, out, source, stochastic, seed, first, variant)
    decode(codec, source, out, variant)


def decode(codec: str, out: Bytes, array: Bytes, variant: str) -> None:
    """Write the numbers of a wire to ``out``."""
    values = out.view(np.float32)
    values[:] = reference.decode(array, codec, len(values))


def encode_topk(out: Bytes, array: Bytes, k: int) -> None:
    """Write the k elements of the largest magnitude, of equal ones the first, and their positions to ``out``."""
    values = array.view(np.float32)
    magnitudes = (values.view(np.uint32) & 0x7FFFFFFF).astype(
        np.int64
    )  # ordered like the numbers, NaN is the largest
    kept = np.sort(np.argsort(-magnitudes, kind="stable")[:k])
    counts = np.bincount(kept // WINDOW, minlength=_windows(len(values)))
    coded = reference.encode(values[kept], "bf16")
    heads = counts.astype(np.uint32).view(np.uint8), (kept % WINDOW).astype(np.uint16).view(np.uint8)
    out[:] = np.concatenate([*heads, coded])


def add_topk(out: Bytes, array: Bytes, k: int) -> None:
    """Add the elements of a wire to ``out``; raise ValueError if the bytes are not a valid wire."""
    values = out.view(np.float32)
    windows = _windows(len(values))
    counts = array[: 4 * windows].view(np.uint32).astype(np.int64)
    if counts.sum() != k:
        raise ValueError(
            f"the windows of a top-k wire hold {'more' if counts.sum() > k else 'fewer'} than k elements"
        )
    positions = np.repeat(np.arange(windows) * WINDOW, counts) + array[4 * windows :][: 2 * k].view(np.uint16)
    if (positions >= len(values)).any():
        raise ValueError("a position on a top-k wire is past the end of its window")
    with np.errstate(all="ignore"):
        np.add.at(values, positions, reference.decode(array[4 * windows + 2 * k :], "bf16", k))
    values[np.isnan(values)] = np.nan  # the NaN of the engine


def _windows(n: int) -> int:
    return -(-n // WINDOW)
