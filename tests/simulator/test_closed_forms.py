"""On the ideal network, simulated times are those of the textbook formulas."""

from __future__ import annotations

import math

import pytest

import unisono
from unisono import networks

ALPHA, BETA, GAMMA = 1e-6, 1e-10, 0.05e-9
IDEAL = networks.ideal(ALPHA, 1 / BETA, GAMMA)
NBYTES = 1 << 20


def ring(p: int, n: float) -> float:
    return 2 * (p - 1) * (ALPHA + n / p * BETA) + (p - 1) * n / p * GAMMA


def tree(p: int, n: float) -> float:
    return math.ceil(math.log2(p)) * (ALPHA + n * BETA)


def pairwise(p: int, n: float) -> float:
    return (p - 1) * (ALPHA + n / p * BETA)


FORMS = [("all_reduce/ring", ring), ("broadcast/tree", tree), ("all_to_all/pairwise", pairwise)]


@pytest.mark.parametrize(("name", "form"), FORMS, ids=[name for name, _ in FORMS])
@pytest.mark.parametrize("size", [2, 3, 5, 6, 7, 8, 13])
def test_simulated_times_are_those_of_the_formula(name, form, size):
    algorithm = unisono.find(name)
    schedule = algorithm.schedule(size, 0 if algorithm.collective.rooted else None)
    predicted = unisono.simulate(schedule, NBYTES, IDEAL)
    assert predicted.time_s == pytest.approx(form(size, NBYTES), rel=1e-3)
    assert predicted.passes == 1
