"""Numbers of 64 bits that stand for larger things: equal for equal things, and, but for accidents, only for those."""

from __future__ import annotations

from typing import Any

import numpy as np

from unisono.simulator.actions import Array


def mixed(numbers: Any) -> Array:
    """Return well-mixed 64-bit numbers (splitmix64)."""
    with np.errstate(over="ignore"):
        mixed = np.asarray(numbers).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


def sums(values: Array, first: Array) -> Array:
    """Return the sums, modulo 2**64, of consecutive values: sum i starts at ``first[i]``."""
    total = np.concatenate([[np.uint64(0)], np.cumsum(values, dtype=np.uint64)])
    found: Array = total[first[1:]] - total[first[:-1]]
    return found
