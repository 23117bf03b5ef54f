"""Packs columns of numbers into little space.

The differences between successive numbers are stored as 32-bit integers, compressed (zlib) and encoded as base64. The
columns of a schedule are regular, so they become very small; browsers can decompress them. A column with larger
numbers (nanoseconds) becomes two: the lower 30 bits, and the higher bits.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

LOW_BITS = 30
HIGH = ".high"  # suffix of the column that holds the higher bits


def pack(columns: Mapping[str, ArrayLike]) -> dict[str, object]:
    """Return the columns as plain data: their names and lengths, and all numbers in one text."""
    arrays: dict[str, NDArray[np.int64]] = {}
    for name, column in columns.items():
        array = np.asarray(column, np.int64)
        if len(array) and max(np.abs(array).max(), np.abs(np.diff(array, prepend=0)).max()) >= 1 << 31:
            arrays[name + HIGH] = array >> LOW_BITS
            array = array & ((1 << LOW_BITS) - 1)
        arrays[name] = array
    differences = [np.diff(array, prepend=0).astype("<i4").tobytes() for array in arrays.values()]
    return {
        "names": list(arrays),
        "lengths": [len(array) for array in arrays.values()],
        "data": base64.b64encode(zlib.compress(b"".join(differences), 9)).decode(),
    }
