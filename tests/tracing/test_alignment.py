"""Clocks that differ by seconds and drift are aligned within the uncertainty that the round trips give."""

from __future__ import annotations

import random

import pytest

from unisono.tracing.alignment import EXACT, Alignment, Offset, RoundTrip, offset_from, offsets_in

SECOND = 10**9


class Clock:
    """A clock that is wrong by ``offset_ns`` at time 0, and gains ``ppm`` microseconds per second."""

    def __init__(self, offset_ns, ppm):
        self.offset_ns, self.ppm = offset_ns, ppm

    def at(self, true_ns):
        return true_ns + self.offset_ns + round(true_ns * self.ppm / 1e6)


def measured(clock, reference, true_ns, rng, trips=20):
    """Return the offset that a rank measures with round trips whose two ways take different times."""
    found = []
    for _ in range(trips):
        there, back = rng.randint(10_000, 400_000), rng.randint(10_000, 90_000)
        found.append(RoundTrip(clock.at(true_ns), reference.at(true_ns + there), clock.at(true_ns + there + back)))
        true_ns += 500_000
    return offset_from(found)


@pytest.mark.parametrize("seed", range(20))
def test_times_of_clocks_that_differ_and_drift_are_aligned_within_the_uncertainty(seed):
    rng = random.Random(seed)
    reference = Clock(rng.randint(0, 10**15), rng.uniform(-50, 50))
    clock = Clock(rng.randint(0, 10**15), rng.uniform(-50, 50))
    begin, end = 100 * SECOND, (100 + rng.randint(1, 4000)) * SECOND
    alignment = Alignment.through([measured(clock, reference, begin, rng), measured(clock, reference, end, rng)])
    limit_ns = alignment.uncertainty_ns(clock.at(begin), clock.at(end))
    assert limit_ns < 250_000
    for true_ns in [begin, end, *(rng.randint(begin, end) for _ in range(50))]:
        error_ns = alignment.aligned(clock.at(true_ns)) - reference.at(true_ns)
        assert abs(error_ns) <= limit_ns + 2_000  # the drift during one round trip


def test_without_a_second_measurement_the_uncertainty_grows_with_the_assumed_drift():
    alignment = Alignment.through([Offset(1000 * SECOND, 7, 30_000)])
    assert alignment.aligned(1500 * SECOND) == 1500 * SECOND + 7
    assert alignment.uncertainty_ns(1000 * SECOND, 1010 * SECOND) == 30_000 + 1_000_000


def test_the_shortest_round_trip_counts_and_its_middle_is_the_moment():
    trips = [RoundTrip(0, 9000, 100), RoundTrip(200, 5120, 240), RoundTrip(300, 9000, 500)]
    assert offset_from(trips) == Offset(220, 4900, 20)
    assert offset_from([]) is None


def test_the_best_early_and_the_best_late_offset_of_a_host_are_used():
    offsets = [Offset(0, 5, 9), Offset(10, 6, 3), Offset(1000, 20, 8), Offset(1010, 26, 2), Offset(1020, 40, 7)]
    alignment = Alignment.through(offsets)
    assert (alignment.begin, alignment.end) == (offsets[1], offsets[3])
    assert [alignment.aligned(ns) for ns in (0, 10, 510, 1010, 2000)] == [6, 16, 526, 1036, 2026]
    assert alignment.uncertainty_ns(0, 1000) == 3


def test_the_reference_clock_is_exact_whatever_other_ranks_measured():
    alignment = Alignment.through([Offset(5, 3, 9), EXACT])
    assert (alignment.aligned(77), alignment.uncertainty_ns(0, 10**15)) == (77, 0)


def test_the_order_of_events_on_a_host_is_kept():
    alignment = Alignment.through([Offset(0, 1000, 600), Offset(1200, 0, 600)])  # the largest possible change
    times = [alignment.aligned(ns) for ns in range(-100, 1400)]
    assert times == sorted(times)


@pytest.mark.parametrize(
    "offsets", [7, [7], [[1, 2]], [[1, 2, 3.5]], [[1, 2, -1]], [[-1, 2, 3]], [[1, 2**70, 3]], [["1", 2, 3]], {}]
)
def test_invalid_offsets_are_refused(offsets):
    with pytest.raises(ValueError, match=r".+"):
        offsets_in({"offsets": offsets})
