"""From tensors to the engine: a plan for every kind of call, remembered, and then run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono import _engine
from unisono.collectives import Collective
from unisono.comm.arguments import Arguments
from unisono.comm.arrays import Array
from unisono.comm.communicator import Communicator
from unisono.compiler import Lengths


class Caller:
    """Makes the calls of one communicator."""

    def __init__(self, comm: Communicator, algorithms: Mapping[str, Any]) -> None:
        self.comm = comm
        self.endpoint: _engine.Endpoint = comm.calls.link.endpoint
        self.algorithms = algorithms

    def plan(
        self, collective: Collective, lengths: Lengths, dtype: str, op: str | None = None, root: int | None = None
    ) -> _engine.Plan:
        """Return the plan of a call; the engine's addresses are given when it runs."""
        size, rank = self.comm.size, self.comm.rank
        held = collective.held_after(rank, size, size, root or 0)
        total = sum(lengths.output)
        result = Array(0, total * len(held) // size, dtype)
        given = Arguments(result, result, dtype, lengths)
        return self.comm.calls.plan_for(collective, given, op, root, self._algorithm(collective, lengths))

    def _algorithm(self, collective: Collective, lengths: Lengths) -> Any:
        # Unequal blocks have few algorithms; who names one for the collective means the usual calls.
        return self.algorithms.get(collective.name) if lengths.equal_blocks or collective.single_array else None
