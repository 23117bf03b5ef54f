"""Finds the rates of a machine from measured times of calls.

The predicted time of a call is a sum of rates, each multiplied by a count, for the path that is the longest at these
rates. So the rates follow from a linear system; the longest paths are then found again, and so on. Errors are
relative, and large ones count less (as in a median): a call that another process has interrupted spoils nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unisono.collectives import Collective
from unisono.costs.prediction import predict
from unisono.costs.rates import DEFAULT, SLOWDOWN_BYTES, Rates
from unisono.costs.terms import Terms

Array = npt.NDArray[np.float64]

MESSAGES = ("call_s", "python_call_s", "near_s", "fetch_s", "send_s", "receive_s", "local_s", "turn_s")
BYTES = (
    "sent_byte_s", "received_byte_s", "reduced_byte_s", "read_byte_s", "written_byte_s", "copied_byte_s",
    "starting_byte_s",
)  # fmt: skip
FITTED = MESSAGES + BYTES  # on one host
BETWEEN_HOSTS = ("call_s", "python_call_s", "far_s", "crossing_s", "crossing_byte_s", "contended_byte_s")
TURNS = 10  # in which the longest paths are found again
WEIGHTINGS = 4
SLOWDOWN_STEPS = (0.87, 0.95, 1.05, 1.15)  # factors on a slowdown that are tried in each turn
LEAST_ERROR = 0.02  # smaller errors have the same weight
PULL = 2e-4  # towards the rates before, for those on which the samples say little


class Sample(NamedTuple):
    """A measured time of a call; ``tracks`` passes are in flight."""

    collective: Collective
    terms: Terms
    nbytes: int
    ranks_per_core: float
    time_s: float
    tracks: int = 1


def fit_rates(
    samples: Sequence[Sample], staging_bytes: int, start: Rates = DEFAULT, names: Sequence[str] = FITTED
) -> Rates:
    """Return the rates with which the predicted times of the samples are closest to the measured ones.

    ``names`` are those of the rates that are found; the others are those of ``start``. With the bytes of an array,
    the slowdown is found too.
    """
    rates, best, least = start, start, np.inf
    for _ in range(TURNS):
        counts, rest_s = _counts(samples, rates, staging_bytes, names)
        rates = _fit(samples, counts, rest_s, rates, start, names)
        if "read_byte_s" in names:
            rates = _with_slowdown(samples, rates, staging_bytes)
        error = float(np.mean(np.abs(errors(samples, rates, staging_bytes)).clip(max=1.0)))
        if error < least:
            best, least = rates, error
    return best


def errors(samples: Sequence[Sample], rates: Rates, staging_bytes: int) -> Array:
    """Return the relative errors of the predicted times."""
    return np.array([_time_s(each, rates, staging_bytes) / each.time_s - 1 for each in samples])


def _time_s(sample: Sample, rates: Rates, staging_bytes: int) -> float:
    rates = rates._replace(ranks_per_core=sample.ranks_per_core)
    return predict(sample.terms, sample.collective, sample.nbytes, rates, staging_bytes, sample.tracks).time_s


def _counts(samples: Sequence[Sample], rates: Rates, staging_bytes: int, names: Sequence[str]) -> tuple[Array, Array]:
    """Return how often each rate is part of the predicted time of each sample, and the rest of the time."""
    base = [_time_s(each, rates, staging_bytes) for each in samples]
    columns = []
    for name in names:
        # The time is linear in the rates as long as the same path is the longest.
        step = 1e-4 * max(getattr(rates, name), getattr(DEFAULT, name))
        more = rates._replace(**{name: getattr(rates, name) + step})
        columns.append(
            [(_time_s(each, more, staging_bytes) - time_s) / step for each, time_s in zip(samples, base, strict=True)]
        )
    counts = np.array(columns).T
    return counts, np.array(base) - counts @ np.array([getattr(rates, name) for name in names])


def _fit(
    samples: Sequence[Sample], counts: Array, rest_s: Array, before: Rates, start: Rates, names: Sequence[str]
) -> Rates:
    measured_s = np.array([each.time_s for each in samples])
    first = np.array([getattr(start, name) for name in names])
    found = _robust(counts / measured_s[:, np.newaxis] * first, 1 - rest_s / measured_s) * first
    # Half-way from the rates before, so that paths of equal length do not take turns.
    mixed = 0.5 * found + 0.5 * np.array([getattr(before, name) for name in names])
    fitted: dict[str, Any] = dict(zip(names, map(float, mixed), strict=True))
    return before._replace(**fitted)


def _with_slowdown(samples: Sequence[Sample], rates: Rates, staging_bytes: int) -> Rates:
    """Return the rates with each slowdown a step closer to the one that fits best."""
    for at, knot in enumerate(SLOWDOWN_BYTES):
        # An array may be twice as long as the vector, and the next knot is four times as far.
        near = [each for each in samples if knot / 8 <= each.nbytes <= 4 * knot]
        if not near:
            continue
        tried = [rates] + [_slower(rates, at, step) for step in SLOWDOWN_STEPS]
        rates = min(tried, key=lambda each: float(np.sum(np.abs(errors(near, each, staging_bytes)).clip(max=1.0))))
    return rates


def _slower(rates: Rates, at: int, times: float) -> Rates:
    factors = list(rates.slowdown)
    factors[at] *= times
    return rates._replace(slowdown=tuple(factors))


def _robust(matrix: Array, target: Array) -> Array:
    """Return non-negative factors x with matrix x close to the target."""
    weights = np.ones(len(target))
    found = np.ones(matrix.shape[1])
    for _ in range(WEIGHTINGS):
        found = _non_negative(matrix, weights, target)
        weights = 1 / np.maximum(np.abs(matrix @ found - target), LEAST_ERROR)
    return found


def _non_negative(matrix: Array, weights: Array, target: Array) -> Array:
    """Return a non-negative least-squares solution: unknowns that would be negative are zero, one after the other."""
    square = matrix.T @ (weights[:, np.newaxis] * matrix)
    right = matrix.T @ (weights * target)
    pull = PULL * float(np.mean(np.diag(square)))
    square, right = square + pull * np.eye(len(right)), right + pull
    used = np.ones(len(right), dtype=bool)
    found = np.zeros(len(right))
    while used.any():
        found[:] = 0.0
        found[used] = np.linalg.solve(square[np.ix_(used, used)], right[used])
        if found.min() >= 0:
            break
        used[int(found.argmin())] = False
    return found
