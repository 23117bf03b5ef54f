"""Ranks the algorithms of a call on another network by simulation.

A communicator chooses by cost terms, which take microseconds (ranking.py). To explain a choice for another machine
there is time to simulate every candidate: the simulator knows several NICs, switches, protocols and rendezvous.
"""

from __future__ import annotations

from unisono.collectives import Collective
from unisono.comm.candidates import Variant, candidates_for
from unisono.comm.ranking import Ranked, Ranking, Takeover
from unisono.compiler import Hosts
from unisono.costs.prediction import Prediction
from unisono.errors import UnisonoError
from unisono.networks import Network
from unisono.schedule import Schedule
from unisono.simulator import simulate

MOST_RANKS = 256  # more are ranked by cost terms
SIZES = tuple(8 << power for power in range(0, 25, 4))  # bytes: 8 to 128 MiB
FAR_BEHIND = 4.0  # times slower than the best at two sizes in a row: not simulated at the next ones


class SimulatedRanking(Ranking):
    """The candidates of a collective on a network of the simulator."""

    def __init__(self, collective: Collective, size: int, hosts: Hosts | None, network: Network) -> None:
        self.collective, self.size, self.network = collective, size, network
        self.variants = [each for each in candidates_for(collective, size, hosts, True) if each.is_practical(size)]
        self._known: dict[tuple[str, int], Prediction | None] = {}

    def predictions(self, nbytes: int) -> list[Ranked]:
        """Return all candidates that can be simulated with their times, the fastest first."""
        return self._sorted(self.variants, nbytes)

    def ranked(self, nbytes: int) -> list[Ranked]:
        """Return all candidates, the fastest first."""
        return self.predictions(nbytes)

    def _sorted(self, variants: list[Variant], nbytes: int) -> list[Ranked]:
        times = [(variant, self._predicted(variant, nbytes)) for variant in variants]
        found = [Ranked(variant, predicted) for variant, predicted in times if predicted is not None]
        return sorted(found, key=lambda ranked: ranked.prediction.time_s)

    def _predicted(self, variant: Variant, nbytes: int) -> Prediction | None:
        key = variant.key, nbytes
        if key not in self._known:
            try:
                schedule = variant.schedule(self.size, 0 if self.collective.rooted else None)
                self._known[key] = _terms(schedule, nbytes, self.network)
            except (UnisonoError, RecursionError):  # a schedule that cannot be simulated is not a candidate
                self._known[key] = None
        return self._known[key]

    def predicted(self, schedule: Schedule, nbytes: int) -> Prediction | None:
        """Return the simulated time of a program that is not a candidate."""
        return _terms(schedule, nbytes, self.network)

    def takeovers(self) -> list[Takeover]:
        """Return the sizes at which another algorithm takes over, to within a factor of about 1.5."""
        if not self.collective.carries_data:
            return [Takeover(0, self.best(0))]
        running = self.variants
        behind = dict.fromkeys((variant.key for variant in running), 0)
        found: list[Takeover] = []
        for below, nbytes in zip((0, *SIZES), SIZES, strict=False):
            ranked = self._sorted(running, nbytes)
            best = ranked[0]
            for each in ranked:
                is_behind = each.prediction.time_s > FAR_BEHIND * ranked[0].prediction.time_s
                behind[each.variant.key] = behind[each.variant.key] + 1 if is_behind else 0
            running = [each.variant for each in ranked if behind[each.variant.key] < 2]
            if not found:
                found.append(Takeover(0, best.variant))
            elif best.variant.key != found[-1].variant.key:
                found.append(self._between(below, nbytes, found[-1].variant, best.variant))
        return found

    def _between(self, below: int, above: int, before: Variant, after: Variant) -> Takeover:
        """Return the size from which one algorithm is faster than another."""
        while above > 1.5 * below:
            middle = int((below * above) ** 0.5)
            ranked = self._sorted([before, after], middle)
            if ranked and ranked[0].variant.key == after.key:
                above = middle
            else:
                below = middle
        return Takeover(above, after)


def _terms(schedule: Schedule, nbytes: int, network: Network) -> Prediction:
    """Return the simulated time of a call, with queues for links as a part of the bandwidth."""
    found = simulate(schedule, nbytes, network)
    path = found.critical_path
    if path is None:
        return Prediction(found.time_s, found.time_s, 0.0, 0.0, 0.0)
    bandwidth_s, reduction_s = path.bandwidth_s + path.copy_s + path.waiting_s, path.reduce_s
    busy_s = path.overhead_s + path.copy_s + path.reduce_s
    return Prediction(found.time_s, found.time_s - bandwidth_s - reduction_s, bandwidth_s, reduction_s, busy_s)
