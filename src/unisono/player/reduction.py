"""The reductions: the meaning of "add" in a call.

Each reduction gives the same bits if its two sides are exchanged, so that ranks that agree on the expression agree on
the bits. Numpy's operations do not guarantee that in some cases, which are defined here (and in the same way by every
engine): a result that is not a number is always the same NaN; the larger of +0 and -0 is +0, the smaller -0; and
complex numbers are multiplied part by part, without fused operations. Complex numbers have no max or min, because
they are not ordered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unisono.reductions import INTEGER, check_op, kind_of

Array = NDArray[Any]

# avg is a sum that is finally divided by the number of ranks.
COMBINES: dict[str, Callable[[Array, Array], Array]] = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "avg": np.add,
    "band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor,
}  # fmt: skip
SMALL = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def combining(op: str, dtype: np.dtype[Any]) -> Callable[[Array, Array], Array]:
    """Return the function that adds two arrays under this op; the result has their dtype."""
    op = check_op(op, dtype.name)
    whole = kind_of(dtype.name) == INTEGER
    combine = _multiply_parts if op == "prod" and dtype.kind == "c" else COMBINES[op]

    nan = complex(np.nan, np.nan) if dtype.kind == "c" else np.nan

    def add(left: Array, right: Array) -> Array:
        with np.errstate(all="ignore"):  # infinities and NaN are ordinary values here
            total = combine(left, right).astype(dtype, copy=False)
            if whole:
                return total
            if op in ("max", "min"):
                positive = np.signbit(right) if op == "max" else np.signbit(left)
                total = np.where(left == right, np.where(positive, left, right), total)
            return np.where(np.isnan(total), np.asarray(nan, dtype), total)

    return add


def combining_wide(op: str, dtype: np.dtype[Any]) -> Callable[[Array, Array], Array] | None:
    """Return the function that adds numbers of 16 and 8 bits within an accumulation: in 32 bits, without rounding.

    See schedule/accumulation.py. None for all other types, which are added in their own type.
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
    """Return the result of a reduction from the total of the additions."""
    if op != "avg":
        return total
    with np.errstate(all="ignore"):
        average = (total / size).astype(total.dtype, copy=False)
    if average.dtype.kind == "c":  # an infinite part makes the other one NaN, whose sign depends on the processor
        parts = average.view(average.real.dtype)
        parts[np.isnan(parts)] = np.nan
    return average
