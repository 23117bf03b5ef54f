"""Why a call uses the algorithm that it uses."""

from __future__ import annotations

from typing import NamedTuple

from unisono.algorithms import catalogue
from unisono.bootstrap.membership import Table
from unisono.collectives import Collective
from unisono.comm.selection import choose
from unisono.verifier import proof_of


class Explanation(NamedTuple):
    """The algorithm for a call, the reason, and what would come next."""

    collective: str
    size: int
    nbytes: int
    algorithm: str
    reason: str
    next_best: str | None

    def __str__(self) -> str:
        ending = f"; next best: {self.next_best}" if self.next_best else ""
        return (
            f"{self.collective} of {self.nbytes} bytes on {self.size} ranks: {self.algorithm}, {self.reason}{ending}"
        )


def explain(
    collective: Collective, size: int, nbytes: int, table: Table, oversubscribed: bool = False
) -> Explanation:
    """Say which algorithm a call would use, why, and the next best."""
    chosen = choose(collective, size, nbytes, table, oversubscribed)
    return Explanation(
        collective.name, size, nbytes, chosen.algorithm.name, chosen.reason,
        _next_best(collective, size, nbytes, chosen.algorithm.name),
    )  # fmt: skip


def _next_best(collective: Collective, size: int, nbytes: int, chosen: str) -> str | None:
    """Return what a simple model of the time puts first among the others."""
    alpha_s, beta_s = 0.3e-6, 1 / 8e9  # a message, and a byte, between two ranks of one machine
    times = {}
    for algorithm in catalogue.serving(collective, size):
        if algorithm.name != chosen:
            proof, _ = proof_of(algorithm.schedule(size))
            times[algorithm.name] = proof.rounds * alpha_s + float(proof.busiest) * nbytes * beta_s
    return min(times, key=lambda name: times[name]) if times else None
