"""Ranks the algorithms of a call by their predicted times.

The prediction multiplies the cost terms of each candidate (costs/terms.py) by the rates of the network, on which all
ranks agree. It uses no clock and no random numbers, so that all ranks make the same choice.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from unisono.collectives import Collective
from unisono.comm.candidates import Variant, candidates_for
from unisono.compiler import Hosts
from unisono.compiler.geometry import STAGING_BYTES, TRACKS_BETWEEN_HOSTS
from unisono.costs.critical_path import terms_of
from unisono.costs.network_model import NetworkModel
from unisono.costs.network_prediction import predict_on_network
from unisono.costs.prediction import Prediction, predict
from unisono.costs.rates import DEFAULT, Rates
from unisono.costs.stored_terms import ENGINE, NETWORK, ONE, stored_terms
from unisono.costs.terms import Terms
from unisono.schedule import Schedule

# Predictions that differ by less are equally good. Among those, the algorithm with the fewest bytes between hosts,
# and then the one that keeps processors busy for the shortest time, leaves the most to other processes.
EQUALLY_GOOD = 1.02
EQUALLY_BUSY = 1.1
SMALLEST_BYTES, LARGEST_BYTES = 8, 1 << 30  # of the sizes at which one algorithm takes over from another


class Ranked(NamedTuple):
    """A candidate and its predicted time."""

    variant: Variant
    prediction: Prediction


class Takeover(NamedTuple):
    """The size from which an algorithm is predicted to be the best."""

    from_bytes: int
    variant: Variant


class Ranking:
    """The candidates of a collective on some hosts, with their cost terms."""

    def __init__(
        self, collective: Collective, size: int, hosts: Hosts | None, rates: Rates | NetworkModel,
        staging_bytes: int = STAGING_BYTES,
    ) -> None:  # fmt: skip
        self.collective, self.size, self.rates, self.staging_bytes = collective, size, rates, staging_bytes
        self.places, self.hosts = hosts, 1 if hosts is None else len(hosts)
        self.candidates = _with_terms(collective, size, hosts, rates)

    def _predict(self, terms: Terms, nbytes: int) -> Prediction:
        rates, staging_bytes = self.rates, self.staging_bytes
        if isinstance(rates, NetworkModel):
            return predict_on_network(terms, self.collective, nbytes, rates, self.hosts, staging_bytes)
        tracks = TRACKS_BETWEEN_HOSTS if self.hosts > 1 else 1
        return predict(terms, self.collective, nbytes, rates, staging_bytes, tracks)

    def predictions(self, nbytes: int) -> list[Ranked]:
        """Return all candidates with their predicted times, the fastest first."""
        found = [Ranked(variant, self._predict(terms, nbytes)) for variant, terms in self.candidates]
        return sorted(found, key=lambda ranked: ranked.prediction.time_s)

    def ranked(self, nbytes: int) -> list[Ranked]:
        """Return all candidates, the one to choose first; the others by their predicted times."""
        while not (found := self._ranked(nbytes))[0].variant.is_practical(self.size):
            impractical = found[0].variant.key  # which takes time to find out, so only the best one is checked
            self.candidates = [each for each in self.candidates if each[0].key != impractical]
        return found

    def _ranked(self, nbytes: int) -> list[Ranked]:
        found = self.predictions(nbytes)
        least_s = found[0].prediction.time_s * EQUALLY_GOOD
        equal = [ranked for ranked in found if ranked.prediction.time_s <= least_s]
        first = self._first_of(equal)
        return [first, *(ranked for ranked in found if ranked is not first)]

    def _first_of(self, equal: list[Ranked]) -> Ranked:
        """Return the one to choose among predictions that are equally good."""
        link = {variant.key: terms.link / terms.chunks for variant, terms in self.candidates}
        least = min(link[ranked.variant.key] for ranked in equal)
        equal = [ranked for ranked in equal if link[ranked.variant.key] <= EQUALLY_GOOD * least]
        least = min(ranked.prediction.busy_s for ranked in equal)
        keys = {ranked.variant.key: ranked for ranked in equal if ranked.prediction.busy_s <= EQUALLY_BUSY * least}
        return next(keys[variant.key] for variant, _ in self.candidates if variant.key in keys)

    def best(self, nbytes: int) -> Variant:
        """Return the candidate to choose."""
        return self.ranked(nbytes)[0].variant

    def takeovers(self) -> list[Takeover]:
        """Return the sizes at which another algorithm takes over, in ascending order; the first one is 0."""
        if not self.collective.carries_data:
            return [Takeover(0, self.best(0))]
        sizes = [1 << power for power in range(SMALLEST_BYTES.bit_length() - 1, LARGEST_BYTES.bit_length())]
        found = [Takeover(0, self.best(sizes[0]))]
        for below, above in pairwise(sizes):
            if self.best(above).key != found[-1].variant.key:
                found.append(self._takeover(below, above, found[-1].variant))
        return found

    def _takeover(self, below: int, above: int, before: Variant) -> Takeover:
        """Return the takeover between two sizes, within a per cent."""
        while above - below > max(1, below // 100):
            middle = (below + above) // 2
            if self.best(middle).key == before.key:
                below = middle
            else:
                above = middle
        return Takeover(above, self.best(above))

    def predicted(self, schedule: Schedule, nbytes: int) -> Prediction | None:
        """Return the predicted time of a program that is not a candidate; None where ranks have ports."""
        if isinstance(self.rates, NetworkModel):
            return None
        return self._predict(terms_of(schedule, self.places), nbytes)


@lru_cache(maxsize=256)
def ranking_for(
    collective: Collective, size: int, hosts: Hosts | None, rates: Rates | NetworkModel = DEFAULT,
    staging_bytes: int = STAGING_BYTES,
) -> Ranking:  # fmt: skip
    """Return the ranking of a collective on these hosts, made once; None stands for one host."""
    return Ranking(collective, size, hosts, rates, staging_bytes)


def _with_terms(
    collective: Collective, size: int, hosts: Hosts | None, rates: Rates | NetworkModel
) -> list[tuple[Variant, Terms]]:
    """Return the candidates with their terms, which are stored; those of a single rank are found here."""
    on_network = isinstance(rates, NetworkModel)
    candidates = candidates_for(collective, size, hosts, any_transport=on_network)
    if size == 1:
        return [(each, terms_of(each.schedule(1, 0 if collective.rooted else None))) for each in candidates]
    kind, nics = (NETWORK, rates.nics) if isinstance(rates, NetworkModel) else (ENGINE, ONE)
    terms = stored_terms(collective.name, (size,) if hosts is None else tuple(map(len, hosts)), kind, nics)
    return [(each, terms[each.key]) for each in candidates if each.key in terms]
