"""One schedule on one network at many sizes, and the sizes at which another schedule becomes the fastest."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from unisono import collectives
from unisono.codecs.codec import Codec
from unisono.networks import Network
from unisono.schedule import Schedule
from unisono.simulator.actions import Programs
from unisono.simulator.simulation import Units, checked, codec_of, cut_for, entry_s, execute, rank_by_rank, units_of
from unisono.simulator.timeline import Timeline, timeline_of

MOST_UNFOLDED = 64  # ranks that are always simulated one by one; more are folded where that is possible
LEAD = 0.01  # by which a schedule must be faster to take over; predictions are not more exact than that
SAME = 1e-9  # relative difference of two times that are equal


class Sweep:
    """Predicts a schedule on a network at any size; the programs are compiled once.

    The times are those of ``simulate``.
    """

    def __init__(
        self, schedule: Schedule, network: Network, *, codec: Codec | str | None = None, segments: int | None = None,
        contention: bool | None = None,
    ) -> None:  # fmt: skip
        self.schedule, self.network = schedule, checked(schedule, 0, network, segments)
        self.codec, self.segments, self.contention = codec_of(codec), segments, contention
        self._units: dict[str, Units] = {}
        self._times_s: dict[int, float] = {}

    def time_s(self, nbytes: int) -> float:
        """Return the time for a vector of ``nbytes``."""
        if nbytes not in self._times_s:
            self._simulate(nbytes, timeline=False)
        return self._times_s[nbytes]

    def timeline(self, nbytes: int) -> Timeline | None:
        """Return the times of all messages and steps; None where there are too many to record."""
        return self._simulate(nbytes, timeline=True)

    def _simulate(self, nbytes: int, timeline: bool) -> Timeline | None:
        schedule, collective = self.schedule, collectives.find(self.schedule.collective)
        network = self.network.for_messages(schedule.size, nbytes / schedule.chunks)
        units, contention = None, self.contention
        if timeline or schedule.size <= MOST_UNFOLDED:
            programs = self._every_rank
            most_sent = programs.most_sent
        else:
            units = self._units_on(network)
            programs, contention, most_sent = units.programs, units.contention, units.compiled.most_sent
        sizes = cut_for(schedule, collective, most_sent, nbytes, network, self.codec, "float32", self.segments)
        costs, outcome, contention, _ = execute(
            schedule, programs, sizes, network, units, contention=contention, record=timeline
        )
        call_s = entry_s(collective, network, nbytes, sizes)
        self._times_s[nbytes] = float(outcome.unit_s.max(initial=0.0)) + call_s
        if outcome.times is None:
            return None
        return timeline_of(schedule, programs, costs, outcome.times, network, contention, call_s, with_use=False)

    @cached_property
    def _every_rank(self) -> Programs:
        return rank_by_rank(self.schedule, self.network, self.codec)

    def _units_on(self, network: Network) -> Units:
        """Return the units on the network of a protocol; routes of other protocols have other costs."""
        if network.name not in self._units:
            self._units[network.name] = units_of(self.schedule, network, self.codec, self.contention)
        return self._units[network.name]


def takeovers(sweeps: Sequence[Sweep], sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return the sizes at which another schedule becomes the fastest: bytes, and the index of the schedule.

    The first entry is the fastest at the first of ``sizes``, which rise. A schedule takes over where it begins to
    lead, provided that its lead reaches a per cent at one of ``sizes``: two that are equally fast do not take turns.
    """
    leader = _fastest(sweeps, sizes[0])
    found = [(sizes[0], leader)]
    for place, nbytes in enumerate(sizes):
        rival = _fastest(sweeps, nbytes)
        before, after = sweeps[leader], sweeps[rival]
        if after.time_s(nbytes) >= before.time_s(nbytes) * (1 - LEAD):
            continue
        behind = [size for size in sizes[:place] if size > found[-1][0] and before.time_s(size) <= after.time_s(size)]
        low = max(behind, default=found[-1][0])
        high = next(size for size in sizes if size > low)
        while high - low > max(1, low // 100):
            middle = (low + high) // 2
            low, high = (middle, high) if before.time_s(middle) <= after.time_s(middle) else (low, middle)
        found.append((high, rival))
        leader = rival
    return found


def _fastest(sweeps: Sequence[Sweep], nbytes: int) -> int:
    """Return the index of the fastest; of several that are equally fast, the first one."""
    best = min(sweep.time_s(nbytes) for sweep in sweeps)
    return next(index for index, sweep in enumerate(sweeps) if sweep.time_s(nbytes) <= best * (1 + SAME))
