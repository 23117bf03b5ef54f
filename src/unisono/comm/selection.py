"""Selects the algorithm of a call, by collective, topology and bytes, and explains the choice.

If ``unisono tune`` has measured the topology, the table (tables.py) states the algorithm; otherwise it is the one
with the shortest predicted time (ranking.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from unisono.algorithms.catalogue import algorithms_serving
from unisono.algorithms.declaration import Algorithm
from unisono.algorithms.host_options import host_options
from unisono.bootstrap.job_config import STAGING_BYTES, Table
from unisono.collectives import Collective
from unisono.comm import messages
from unisono.comm.candidates import NO_OPTIONS, Variant, variant_of
from unisono.comm.ranking import Ranked, Ranking, ranking_for
from unisono.comm.topology import topology_of
from unisono.compiler import Hosts
from unisono.costs.network_model import NetworkModel
from unisono.costs.prediction import Prediction
from unisono.costs.rates import DEFAULT, Rates
from unisono.message import Message


class Rule(NamedTuple):
    """A row of a table: the algorithm from a number of bytes on, and its options."""

    from_bytes: int
    algorithm: str
    options: Mapping[str, Any] = NO_OPTIONS


class Choice(NamedTuple):
    """An algorithm, the reason for choosing it, and its options."""

    algorithm: Algorithm
    reason: Message
    options: Mapping[str, Any] = NO_OPTIONS


def choose(
    collective: Collective, size: int, nbytes: int, table: Table, rates: Rates | NetworkModel = DEFAULT,
    may_be_used: Callable[[Variant], bool] = lambda variant: True, hosts: Hosts | None = None,
    staging_bytes: int = STAGING_BYTES, ranking: Ranking | None = None,
) -> Choice:  # fmt: skip
    """Return the algorithm of a call that names none; ``rates`` are those of the network, or ``ranking`` knows it.

    ``hosts`` are the ranks of each host; None stands for one host. If the best algorithm may not be used, the next
    one that may be used is chosen.
    """
    topology = topology_of(size, hosts)
    several = hosts is not None and len(hosts) > 1
    rows = table.get(collective.name, {}).get(topology)
    if rows:
        rules = [Rule(*row) for row in rows]
        rules.sort(key=lambda rule: (rule.from_bytes > nbytes, -rule.from_bytes))  # first those for this size
        measured = [variant_of(collective, rule.algorithm, rule.options, hosts) for rule in rules]
        origin = messages.MEASURED_ON_HOSTS() if several else messages.MEASURED()
        best = measured[0]
        if best.is_practical(size) and may_be_used(best):
            found = messages.BEST_FROM_ON_HOSTS if several else messages.BEST_FROM
            sizes = sizes_of(rules[0].from_bytes, [rule.from_bytes for rule in rules])
            return Choice(
                best.algorithm, found(sizes=sizes, size=size, topology=topology, origin=origin), best.options
            )
    else:
        measured, origin = [], messages.PREDICTED()
        ranking = ranking or ranking_for(collective, size, hosts, rates, staging_bytes)
        ranked = ranking.ranked(nbytes)
        best = ranked[0].variant
        if may_be_used(best):
            return Choice(best.algorithm, reason_of(ranked[0]), best.options)
    ranking = ranking or ranking_for(collective, size, hosts, rates, staging_bytes)
    others = [*measured, *(each.variant for each in ranking.ranked(nbytes))]
    others += [Variant(each, host_options(each, hosts)) for each in algorithms_serving(collective, size)]
    other = next(each for each in others if each.is_practical(size) and may_be_used(each))
    not_allowed = messages.BEST_NOT_ALLOWED_ON_HOSTS if several else messages.BEST_NOT_ALLOWED
    reason = not_allowed(best=best.name, size=size, topology=topology, origin=origin)
    return Choice(other.algorithm, reason, other.options)


def reason_of(ranked: Ranked) -> Message:
    """Return the predicted time of a call and the terms of which it consists, in words."""
    predicted = ranked.prediction
    return messages.PREDICTED_TIME(
        time=micro(predicted.time_s), latency=micro(predicted.latency_s), bandwidth=micro(predicted.bandwidth_s),
        reduction=micro(predicted.reduction_s),
    )  # fmt: skip


def micro(seconds: float) -> str:
    """Return a number of microseconds with three digits."""
    value = seconds * 1e6
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def sizes_of(start: int, starts: Sequence[int]) -> Message:
    """Return the sizes from one start up to the next."""
    end = min((other for other in starts if other > start), default=None)
    if end is None:
        return messages.SIZES_FROM(start=start) if start else messages.ANY_SIZE()
    return messages.SIZES_BETWEEN(start=start, last=end - 1) if start else messages.SIZES_BELOW(end=end)


__all__ = ["Choice", "Prediction", "Rule", "choose", "micro", "reason_of", "sizes_of"]
