"""On the ideal network, simulated times are those of the textbook formulas.

alpha is the latency of a message, beta the time of a byte on the wire, gamma that of a byte in a reduction; p is the
number of ranks and n the number of bytes. Sources: Chan, Heimlich, Purkayastha and van de Geijn (2007), Thakur,
Rabenseifner and Gropp (2005), Bruck et al. (1997), Chen et al. (2005).
"""

from __future__ import annotations

import pytest

import unisono
from unisono import networks

ALPHA, BETA, GAMMA = 1e-6, 1e-10, 0.05e-9
IDEAL = networks.ideal(ALPHA, 1 / BETA, GAMMA)
SMALL = (2, 3, 4, 5, 6, 7, 8, 13, 16, 24)
LARGE = (31, 32, 48, 64, 100, 127, 128, 255, 256, 511, 512, 768, 1000, 1023, 1024)


def lg(p):
    """Return the logarithm of p, rounded up."""
    return (p - 1).bit_length()


def power(p):
    """Return the largest power of two that is not above p."""
    return 1 << (p.bit_length() - 1)


def message(n):
    return ALPHA + n * BETA


def added(n):
    return message(n) + n * GAMMA


def ring_all_reduce(p, n):
    return (p - 1) * (added(n / p) + message(n / p))


def recursive_doubling(p, n):
    fold = message(n) + added(n) if p != power(p) else 0.0
    return fold + lg(power(p)) * added(n)


def rabenseifner(p, n):
    q = power(p)
    fold = message(n) + added(n) if p != q else 0.0
    return fold + 2 * lg(q) * ALPHA + (q - 1) / q * n * (2 * BETA + GAMMA)


def bruck_all_to_all(p, n):
    """Round k moves the blocks whose distance to their destination has bit k."""
    return sum(message(sum(1 for d in range(p) if d >> k & 1) * n / p) for k in range(lg(p)))


def segments_of_chain(p, n):
    k = unisono.find("broadcast/chain").schedule(p, 0).chunks
    return (p - 2 + k) * message(n / k)


def two_level(p, n):
    """Ring inside nodes of two ranks, and ring between the nodes, on what each rank has got."""
    m, h = 2, p // 2
    inside = (m - 1) * (added(n / m) + message(n / m))
    return inside + (h - 1) * (added(n / p) + message(n / p))


RINGS = {"inner": "ring", "outer": "ring", "node": 2}
FORMS = {
    "all_reduce/ring": ring_all_reduce,
    "all_gather/ring": lambda p, n: (p - 1) * message(n / p),
    "reduce_scatter/ring": lambda p, n: (p - 1) * added(n / p),
    "all_reduce/recursive_doubling": recursive_doubling,
    "all_reduce/rabenseifner": rabenseifner,
    "broadcast/tree": lambda p, n: lg(p) * message(n),
    "reduce/tree": lambda p, n: lg(p) * added(n),
    "scatter/tree": lambda p, n: lg(p) * ALPHA + (p - 1) / p * n * BETA,
    "gather/tree": lambda p, n: lg(p) * ALPHA + (p - 1) / p * n * BETA,
    "all_gather/bruck": lambda p, n: lg(p) * ALPHA + (p - 1) / p * n * BETA,
    "all_to_all/bruck": bruck_all_to_all,
    "all_to_all/pairwise": lambda p, n: (p - 1) * message(n / p),
    "all_gather/neighbour_exchange": lambda p, n: p / 2 * ALPHA + (p - 1) / p * n * BETA,
    "broadcast/scatter_all_gather": lambda p, n: (lg(p) + p - 1) * ALPHA + 2 * (p - 1) / p * n * BETA,
    "broadcast/chain": segments_of_chain,
    "all_reduce/hierarchical": two_level,
    "barrier/dissemination": lambda p, n: lg(p) * ALPHA,
}
EVEN = ("all_gather/neighbour_exchange", "all_reduce/hierarchical")


def check(name, size, nbytes):
    algorithm = unisono.find(name)
    options = RINGS if name == "all_reduce/hierarchical" else {}
    schedule = algorithm.schedule(size, size // 2 if algorithm.collective.rooted else None, **options)
    predicted = unisono.simulate(schedule, nbytes, IDEAL)
    assert predicted.time_s == pytest.approx(FORMS[name](size, nbytes), rel=1e-3)
    assert predicted.passes == 1


@pytest.mark.parametrize("name", FORMS)
def test_simulated_times_are_those_of_the_formula(name):
    for size in SMALL:
        if name not in EVEN or size % 2 == 0:
            for nbytes in (8, 1_000_003, 1 << 24):
                check(name, size, nbytes)


@pytest.mark.long
@pytest.mark.parametrize("name", FORMS)
def test_they_hold_up_to_1024_ranks(name):
    for size in LARGE:
        if name not in EVEN or size % 2 == 0:
            check(name, size, 1 << 20)
