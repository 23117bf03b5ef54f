"""Pack columns of numbers so that they take little room in a page.

What is stored is the difference of each number to the one before it, as 32-bit integers, compressed (zlib)
and written as base64. Columns of a schedule are regular, and so shrink to very little; a browser unpacks them
by itself. Columns with larger numbers (nanoseconds) become two: their lower 30 bits, and what is above.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

LOW_BITS = 30
HIGH = ".high"  # after the name of a column: what is above those bits


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
