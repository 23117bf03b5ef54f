"""From tensors to the engine: a plan for every kind of call, remembered, and then run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from unisono import _engine
from unisono.codecs import Codec
from unisono.collectives import Collective
from unisono.comm.arguments import Arguments
from unisono.comm.arrays import Array
from unisono.comm.communicator import Communicator
from unisono.compiler import Lengths

MOST_PLANS = 4096


class Blocks(NamedTuple):
    """How long the blocks of a call are, in elements (see compiler.Lengths, which this becomes when it is new)."""

    input: tuple[int, ...]
    output: tuple[int, ...]
    equal: bool = True


class PlanCache:
    """Makes the plans of one communicator."""

    def __init__(self, comm: Communicator, algorithms: Mapping[str, Any]) -> None:
        self.comm = comm
        self.endpoint: _engine.Endpoint = comm.calls.link.endpoint
        self.algorithms = algorithms
        self.plans: dict[Any, _engine.Plan] = {}

    def plan(
        self, collective: Collective, blocks: Blocks, dtype: str, op: str | None = None, root: int | None = None,
        codec: Codec | None = None,
    ) -> _engine.Plan:  # fmt: skip
        """Return the plan of a call; the engine's addresses are given when it runs."""
        key = (collective.name, blocks, dtype, op, root, codec)
        found = self.plans.get(key)
        if found is None:
            if len(self.plans) >= MOST_PLANS:
                self.plans.clear()
            found = self.plans[key] = self._make(collective, Lengths(*blocks), dtype, op, root, codec)
        return found

    def _make(
        self, collective: Collective, lengths: Lengths, dtype: str, op: str | None, root: int | None,
        codec: Codec | None,
    ) -> _engine.Plan:  # fmt: skip
        size, rank = self.comm.size, self.comm.rank
        held = collective.held_after(rank, size, size, root or 0)
        result = Array(0, sum(lengths.output) * len(held) // size, dtype)
        given = Arguments(result, result, dtype, lengths)
        # Unequal blocks have few algorithms; who names one for the collective means the usual calls.
        usual = lengths.equal_blocks or collective.single_array
        algorithm = self.algorithms.get(collective.name) if usual else None
        return self.comm.calls.plan_for(collective, given, op, root, algorithm, codec)
