"""Selects the algorithm of a call on GPUs that names none, by the predicted time of its device programs (costs.py).

A new algorithm needs nothing else to be considered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from unisono.algorithms.catalogue import algorithms_serving
from unisono.algorithms.declaration import Algorithm
from unisono.collectives import Collective
from unisono.gpu.costs import KERNEL_RATES, DeviceRates, fastest
from unisono.schedule import Schedule
from unisono.verifier import ProvedSchedule, proved

SIGNIFICANT_BITS = 4


def choose_for_device(
    collective: Collective, size: int, root: int | None, nbytes: int, rates: DeviceRates = KERNEL_RATES,
    may_be_used: Callable[[Schedule], bool] | None = None,
) -> Algorithm:  # fmt: skip
    """Return the algorithm with the shortest predicted time among those that may be used.

    ``nbytes`` are the bytes of the whole vector. ``may_be_used`` tells whether a schedule can be used, for example
    because all ranks agree although a codec rounds; by default every one can.
    """
    # Vectors of nearly the same length get the same algorithm, so that it is found at once.
    shift = max(0, nbytes.bit_length() - SIGNIFICANT_BITS)
    ranked = _ranked(collective, size, root, nbytes >> shift << shift, rates)
    return next(each for each in ranked if may_be_used is None or may_be_used(each.schedule(size, root)))


@lru_cache(maxsize=1024)
def _ranked(collective: Collective, size: int, root: int | None, nbytes: int, rates: DeviceRates) -> list[Algorithm]:
    candidates = _candidates(collective, size, root)
    return [each for each, _ in sorted(candidates, key=lambda each: fastest(each[1], False, nbytes, rates)[1])]


@lru_cache(maxsize=64)
def _candidates(collective: Collective, size: int, root: int | None) -> list[tuple[Algorithm, ProvedSchedule]]:
    return [(each, proved(each.schedule(size, root), warns=False)) for each in algorithms_serving(collective, size)]
