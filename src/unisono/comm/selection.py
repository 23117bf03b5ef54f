"""Which algorithm does a call: by collective, number of ranks and bytes.

A *table* lists, for a collective and a number of ranks, from how many bytes on which algorithm is the best. ``unisono
tune`` measures one for this machine; without it the built-in rules below hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from unisono.algorithms import find
from unisono.algorithms.catalogue import serving
from unisono.algorithms.declaration import Algorithm
from unisono.bootstrap.membership import Table
from unisono.collectives import Collective


class Rule(NamedTuple):
    """From ``from_bytes`` on, this algorithm."""

    from_bytes: int
    algorithm: str


KIB = 1024
# Without measurements. Short vectors want few steps; long ones few bytes; and on one machine, where everybody reaches
# everybody, the direct ways are hard to beat.
BUILT_IN: dict[str, tuple[Rule, ...]] = {
    "all_reduce": (Rule(0, "recursive_doubling"), Rule(8 * KIB, "direct")),
    "all_gather": (Rule(0, "naive"),),
    "reduce_scatter": (Rule(0, "naive"),),
    "broadcast": (Rule(0, "naive"),),
    "reduce": (Rule(0, "naive"),),
    "gather": (Rule(0, "naive"),),
    "scatter": (Rule(0, "naive"),),
    "all_to_all": (Rule(0, "naive"),),
    "barrier": (Rule(0, "dissemination"),),
}
# Where ranks share cores, every step costs a change of process on each core: one step is best while it is cheap.
OVERSUBSCRIBED: dict[str, tuple[Rule, ...]] = {**BUILT_IN, "all_reduce": (Rule(0, "naive"), Rule(4 * KIB, "direct"))}


class Choice(NamedTuple):
    """An algorithm, and why it was taken."""

    algorithm: Algorithm
    reason: str


def choose(
    collective: Collective, size: int, nbytes: int, table: Table, oversubscribed: bool = False,
    may_be_used: Callable[[Algorithm], bool] = lambda algorithm: True,
) -> Choice:  # fmt: skip
    """Return the algorithm for a call that was given none; ``oversubscribed``: there are more ranks than cores.

    If the best one may not be used, it is the next one of the list that may.
    """
    measured = table.get(collective.name, {}).get(str(size))
    rules = (
        [Rule(*row) for row in measured]
        if measured
        else (OVERSUBSCRIBED if oversubscribed else BUILT_IN)[collective.name]
    )
    rule = max((rule for rule in rules if rule.from_bytes <= nbytes), key=lambda rule: rule.from_bytes)
    origin = (
        "measured by `unisono tune` on this machine" if measured else "the built-in rule; `unisono tune` measures"
    )
    best = find(rule.algorithm, collective)
    if may_be_used(best):
        return Choice(best, f"the best from {rule.from_bytes} bytes on with {size} ranks ({origin})")
    listed = [find(rule.algorithm, collective) for rule in rules]
    other = next(one for one in [*listed, *serving(collective, size)] if may_be_used(one))
    return Choice(other, f"as {best.name}, the best with {size} ranks ({origin}), may not be used here")
