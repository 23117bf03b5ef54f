"""The clock of this host, and its offset to the reference clock, which is the clock of the host of rank 0."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from unisono import _engine

if TYPE_CHECKING:
    from unisono.tracing.alignment import Offset, RoundTrip

# Seconds to wait for an answer. A rank that has ended is known to be gone, but a stopped one does not answer. The
# first question may have to wait for a connection.
FIRST_ANSWER_S = 2.0
NEXT_ANSWER_S = 0.2
LONGEST_S = 3.0  # for a whole measurement


class HostClock:
    """The clock that the traces of this process use; tests replace it by clocks that differ.

    ``references`` are the far ranks on the host with the reference clock, as the courier numbers them; if there are
    none, this host has the reference clock.
    """

    def __init__(self, courier: _engine.Courier | None, references: Sequence[int]) -> None:
        self.courier = courier
        self.references = references

    def identity(self) -> dict[str, str]:
        """Return the properties that distinguish this clock from other clocks."""
        from unisono.tracing.clock import this_clock

        return this_clock()

    def times(self, monotonic_ns: Any) -> Any:
        """Return times of CLOCK_MONOTONIC, in which the engine counts, as times of this clock."""
        return monotonic_ns

    def now_ns(self) -> int:
        """Return the time."""
        return int(self.times(time.monotonic_ns()))

    def ask(self, rank: int, timeout_s: float) -> RoundTrip | None:
        """Return a reading of the clock of a far rank, or None if it does not answer."""
        from unisono.tracing.alignment import RoundTrip

        assert self.courier is not None
        readings = self.courier.ask_clock(rank, timeout_s)
        return None if readings is None else RoundTrip(*readings)

    def measure(self) -> list[Offset]:
        """Return a list with the offset to the reference clock; it is empty if no rank with that clock answers."""
        from unisono.tracing.alignment import EXACT, ROUND_TRIPS, offset_from

        if not self.references:
            return [EXACT]
        ends_s = time.monotonic() + LONGEST_S
        for rank in self.references:
            trips: list[RoundTrip] = []
            while len(trips) < ROUND_TRIPS and (left_s := ends_s - time.monotonic()) > 0:
                trip = self.ask(rank, min(left_s, NEXT_ANSWER_S if trips else FIRST_ANSWER_S))
                if trip is None:
                    break
                trips.append(trip)
            offset = offset_from(trips)
            if offset is not None:
                return [offset]
        return []
