"""The reductions: what "add" means in a call.

Each one gives the same bits whichever of its two sides comes first, so that ranks which agree on the expression agree
on the bits. Numpy's own do not in some corners, which are settled here (and must be by every engine): a result that
is not a number is always the same NaN; the larger of +0 and -0 is +0, the smaller -0; and complex numbers are
multiplied part by part, without fused operations. Complex numbers have no order: there is no max or min of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unisono.reductions import INTEGER, check_op, kind_of

Array = NDArray[Any]

# avg is a sum that is divided by the number of ranks in the end.
COMBINES: dict[str, Callable[[Array, Array], Array]] = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "avg": np.add,
    "band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor,
}  # fmt: skip
SMALL = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def combining(op: str, dtype: np.dtype[Any]) -> Callable[[Array, Array], Array]:
    """Return how two arrays are added under this op; the result keeps their dtype."""
    op = check_op(op, dtype.name)
    whole = kind_of(dtype.name) == INTEGER
    combine = _multiply_parts if op == "prod" and dtype.kind == "c" else COMBINES[op]

    nan = complex(np.nan, np.nan) if dtype.kind == "c" else np.nan

    def add(left: Array, right: Array) -> Array:
        with np.errstate(all="ignore"):  # infinities and NaN are values like others here
            total = combine(left, right).astype(dtype, copy=False)
            if whole:
                return total
            if op in ("max", "min"):
                positive = np.signbit(right) if op == "max" else np.signbit(left)
                total = np.where(left == right, np.where(positive, left, right), total)
            return np.where(np.isnan(total), np.asarray(nan, dtype), total)

    return add


def combining_wide(op: str, dtype: np.dtype[Any]) -> Callable[[Array, Array], Array] | None:
    """Return how numbers of 16 and 8 bits are added within a run: as 32-bit numbers, not yet rounded (see
    schedule/accumulation.py).

    None for all other types: they are added as what they are.
    """
    if dtype.name not in SMALL:
        return None
    add = combining(op, np.dtype(np.float32))

    def add_wide(left: Array, right: Array) -> Array:
        return add(left.astype(np.float32, copy=False), right.astype(np.float32, copy=False))

    return add_wide


def rounded(wide: Array, dtype: np.dtype[Any]) -> Array:
    """Round 32-bit numbers to a smaller type."""
    with np.errstate(all="ignore"):
        narrow = wide.astype(dtype)
        return np.where(np.isnan(narrow), np.asarray(np.nan, dtype), narrow)


def _multiply_parts(left: Array, right: Array) -> Array:
    product = np.empty_like(left)
    product.real = left.real * right.real - left.imag * right.imag
    product.imag = left.real * right.imag + left.imag * right.real
    return product


def finished(op: str, total: Array, size: int) -> Array:
    """Return the result of a reduction from what was added up."""
    if op != "avg":
        return total
    with np.errstate(all="ignore"):
        return (total / size).astype(total.dtype, copy=False)
