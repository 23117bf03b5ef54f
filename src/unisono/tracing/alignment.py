"""Aligns the clocks of several hosts, so that one trace can hold the events of all of them.

A rank **asks** another host for its clock: it reads its own clock, the other host reads its clock, and the rank reads
its own again (a **round trip**). The other clock was read at some moment in between; the middle is wrong by at most
half of the round trip. So the shortest of several round trips gives the **offset** to add to a time of this host, and
its **uncertainty**.

Clocks also drift: the oscillators of two machines differ by some microseconds per second. So the offset is measured
at the beginning and at the end of a recording, and is interpolated in between. All offsets lead to the **reference
clock**, that of the host of rank 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from unisono.tracing import validation

ROUND_TRIPS = 20
# Assumed if the offset was measured only once: two oscillators that are each wrong by 50 ppm.
DRIFT = 1e-4
LATEST_NS = 2**63


class RoundTrip(NamedTuple):
    """A reading of the clock of another host, and the readings of this host's clock before and after it, in ns."""

    asked_ns: int
    read_ns: int
    answered_ns: int


class Offset(NamedTuple):
    """The time to add to the clock of a host at a moment of that clock, and the most by which it is wrong."""

    at_ns: int
    offset_ns: int
    uncertainty_ns: int


EXACT = Offset(0, 0, 0)  # of the reference clock itself


def offset_from(trips: Iterable[RoundTrip]) -> Offset | None:
    """Return the offset that the shortest round trip gives; None if there is none."""
    best = min(trips, key=lambda trip: trip.answered_ns - trip.asked_ns, default=None)
    if best is None:
        return None
    middle_ns = (best.asked_ns + best.answered_ns) // 2
    return Offset(middle_ns, best.read_ns - middle_ns, (best.answered_ns - best.asked_ns + 1) // 2)


@dataclass(frozen=True)
class Alignment:
    """Converts times of one clock to times of the reference clock; ``begin`` and ``end`` may be the same."""

    begin: Offset
    end: Offset

    @classmethod
    def through(cls, offsets: Sequence[Offset]) -> Alignment:
        """Return the alignment by the best of the early and the best of the late offsets.

        The ranks of a host have one clock, and each of them has measured it.
        """
        if EXACT in offsets:
            return cls(EXACT, EXACT)
        middle_ns = (min(one.at_ns for one in offsets) + max(one.at_ns for one in offsets)) // 2
        early = [one for one in offsets if one.at_ns <= middle_ns]
        late = [one for one in offsets if one.at_ns > middle_ns]
        begin = min(early, key=lambda one: one.uncertainty_ns)
        return cls(begin, min(late, key=lambda one: one.uncertainty_ns, default=begin))

    def aligned(self, ns: int) -> int:
        """Return a time of this clock as a time of the reference clock."""
        begin, end = self.begin, self.end
        span_ns = end.at_ns - begin.at_ns
        if span_ns <= 0 or ns <= begin.at_ns:
            return ns + begin.offset_ns
        past_ns = min(ns - begin.at_ns, span_ns)
        return ns + begin.offset_ns + past_ns * (end.offset_ns - begin.offset_ns) // span_ns

    def uncertainty_ns(self, began_ns: int, ended_ns: int) -> int:
        """Return the most by which aligned times between two moments are wrong, if the drift is constant.

        If the offset was measured only once, the drift is unknown, and assumed to be small.
        """
        if self.begin == self.end == EXACT:
            return 0
        if self.begin != self.end:
            return max(self.begin.uncertainty_ns, self.end.uncertainty_ns)
        farthest_ns = max(abs(began_ns - self.begin.at_ns), abs(ended_ns - self.begin.at_ns))
        return self.begin.uncertainty_ns + round(DRIFT * farthest_ns)


def offsets_in(header: dict[str, Any]) -> list[Offset]:
    """Return the offsets in the header of a part; ValueError if they are invalid."""
    found = header.get("offsets", [])
    if type(found) is not list:
        raise ValueError(validation.shortened(found))
    return [_offset(one) for one in found]


def _offset(numbers: Any) -> Offset:
    if type(numbers) is not list or len(numbers) != 3 or not all(type(one) is int for one in numbers):
        raise ValueError(validation.shortened(numbers))
    offset = Offset(*numbers)
    if not (0 <= offset.at_ns < LATEST_NS and abs(offset.offset_ns) < LATEST_NS and offset.uncertainty_ns >= 0):
        raise ValueError(validation.shortened(numbers))
    return offset
