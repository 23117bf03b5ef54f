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
from unisono.costs.rates import DEFAULT, Rates
from unisono.costs.terms import Terms

Array = npt.NDArray[np.float64]

MESSAGES = ("call_s", "python_call_s", "near_s", "send_s", "receive_s", "local_s", "turn_s")
BYTES = ("sent_byte_s", "received_byte_s", "reduced_byte_s", "copied_byte_s")
FITTED = MESSAGES + BYTES  # on one host
BETWEEN_HOSTS = ("call_s", "python_call_s", "far_s", "crossing_s", "crossing_byte_s", "contended_byte_s")
TURNS = 8  # in which the longest paths are found again
WEIGHTINGS = 4
CACHES = tuple(1 << power for power in range(20, 26))
BEYOND = (1.0, 1.25, 1.5, 2.0, 2.5)
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

    ``names`` are those of the rates that are found; the others are those of ``start``.
    """
    rates = start._replace(cache_bytes=0.0, beyond_cache=1.0)
    best, least = rates, np.inf
    for _ in range(TURNS):
        counts, rest_s = _counts(samples, rates, staging_bytes, names)
        rates = _fit(samples, counts, rest_s, rates, start, names)
        error = float(np.median(np.abs(errors(samples, rates, staging_bytes))))
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
    """Return how often each rate is part of the predicted time of each sample, and the rest of the time.

    The effect of caches is left out.
    """
    rates = rates._replace(cache_bytes=0.0)
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
    target = 1 - rest_s / measured_s
    long = np.array([3 * each.nbytes for each in samples])
    first = np.array([getattr(start, name) for name in names])
    is_byte = np.array([name in BYTES for name in names])
    best: tuple[float, Array, float, float] | None = None
    for cache in CACHES:
        beyond_s = (long > cache)[:, np.newaxis] & is_byte
        if not beyond_s.any() and cache != CACHES[-1]:
            continue
        for slower in BEYOND:
            scaled = np.where(beyond_s, slower, 1.0) * counts / measured_s[:, np.newaxis]
            found, error = _robust(scaled * first, target)
            if best is None or error < best[0] * 0.99:
                best = error, found * first, cache, slower
    assert best is not None
    _, values, cache_bytes, beyond_cache = best
    # Half-way from the rates before, so that paths of equal length do not take turns.
    mixed = 0.5 * values + 0.5 * np.array([getattr(before, name) for name in names])
    fitted: dict[str, Any] = dict(zip(names, map(float, mixed), strict=True))
    return before._replace(**fitted, cache_bytes=float(cache_bytes), beyond_cache=beyond_cache)


def _robust(matrix: Array, target: Array) -> tuple[Array, float]:
    """Return non-negative factors x with matrix x close to the target, and the mean absolute error."""
    weights = np.ones(len(target))
    found = np.ones(matrix.shape[1])
    for _ in range(WEIGHTINGS):
        found = _non_negative(matrix, weights, target)
        weights = 1 / np.maximum(np.abs(matrix @ found - target), LEAST_ERROR)
    return found, float(np.mean(np.abs(matrix @ found - target)))


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
