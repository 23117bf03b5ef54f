"""Fits constants: descent along one constant at a time, with steps that shrink; and a loss that ignores outliers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

TOLERANCE = 0.12  # an error far beyond it counts once: runs on a slow host do not decide the constants


def robust_loss(ratios: Iterable[float]) -> float:
    """Return the loss of predicted / measured ratios, large errors counted alike."""
    return sum(1 - math.exp(-((math.log(ratio) / TOLERANCE) ** 2)) for ratio in ratios)


def descend(loss: Callable[[Sequence[float]], float], start: Sequence[float]) -> tuple[float, ...]:
    """Return the values near ``start`` that minimise the loss."""
    values, factor = list(start), 1.3
    best = loss(values)
    while factor > 1.004:
        improved = False
        for index in range(len(values)):
            for scale in (factor, 1 / factor):
                trial = [*values[:index], values[index] * scale, *values[index + 1 :]]
                value = loss(trial)
                if value < best - 1e-9:
                    best, values, improved = value, trial, True
        if not improved:
            factor = math.sqrt(factor)
    return tuple(values)
