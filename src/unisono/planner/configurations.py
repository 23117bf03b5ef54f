"""Configurations: a combination of strategies, and all combinations that a model and a cluster admit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from unisono.errors import UsageError
from unisono.planner import messages
from unisono.planner.models import Model

NOTHING, GATHERS, EVERYTHING = RECOMPUTE = ("none", "gathers", "full")
MOST_TENSOR_PARALLEL = 64
MOST_MICRO_BATCH = 64


@dataclass(frozen=True)
class Configuration:
    """A way to train a model on dp * tp * pp ranks.

    ``dp``, ``tp``, ``pp``: ranks of data, tensor and pipeline parallelism. Neighbouring ranks share a tensor-parallel
    group, then a data-parallel group; stages are furthest apart.
    ``ep``: ranks among which the experts of a layer are divided; they are part of the data-parallel ranks.
    ``sequence_parallel``: norms and residuals are split by position over the tensor-parallel ranks.
    ``zero``: the stage of ZeRO over the data-parallel ranks.
    ``micro_batch``: the sequences of a micro-batch; ``micro_batches``: their number for each rank and step.
    ``recompute``: "none"; "gathers": tensor-parallel inputs are gathered again in the backward pass; "full": each
    layer is computed again.
    """

    dp: int = 1
    tp: int = 1
    pp: int = 1
    ep: int = 1
    sequence_parallel: bool = False
    zero: int = 0
    micro_batch: int = 1
    micro_batches: int = 1
    recompute: str = NOTHING

    def __post_init__(self) -> None:
        for key in ("dp", "tp", "pp", "ep", "micro_batch", "micro_batches"):
            value = getattr(self, key)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise _error(key, "1, 2, 3, ...", value)
        if self.zero not in (0, 1, 2, 3):
            raise _error("zero", "0, 1, 2, 3", self.zero)
        if self.recompute not in RECOMPUTE:
            raise _error("recompute", ", ".join(RECOMPUTE), self.recompute)
        if self.dp % self.ep:
            raise _error("ep", f"a divisor of dp={self.dp}", self.ep)

    def check(self, model: Model) -> None:
        """Raise UsageError where a model cannot be divided in this way."""
        if model.heads % self.tp or model.intermediate % self.tp:
            raise _error("tp", f"a divisor of heads={model.heads}, intermediate={model.intermediate}", self.tp)
        if self.pp > model.layers:
            raise _error("pp", f"1 - {model.layers}", self.pp)
        if model.experts % self.ep:
            raise _error("ep", f"a divisor of experts={model.experts}", self.ep)

    @property
    def gpus(self) -> int:
        """The number of ranks."""
        return self.dp * self.tp * self.pp

    @property
    def sequences(self) -> int:
        """The sequences of a step."""
        return self.dp * self.micro_batch * self.micro_batches

    def __str__(self) -> str:
        parts = [f"dp{self.dp}", f"tp{self.tp}" + ("+sp" if self.sequence_parallel else ""), f"pp{self.pp}"]
        parts += [f"ep{self.ep}"] if self.ep > 1 else []
        parts += [f"zero{self.zero}", f"mb{self.micro_batch}"]
        parts += [f"recompute {self.recompute}"] if self.recompute != NOTHING else []
        return " ".join(parts)


def _error(key: str, expected: str, found: object) -> UsageError:
    return UsageError(messages.BAD_CONFIGURATION(key=key, expected=expected, found=repr(found)[:40]))


def admissible(model: Model, gpus: int, sequences: int) -> Iterator[Configuration]:
    """Yield every combination that divides the model and the batch evenly.

    Stages of ZeRO above 1 are not combined with pipelines: their gradients would be reduced for every micro-batch.
    """
    for tp in _divisors(gpus):
        if tp > MOST_TENSOR_PARALLEL or model.heads % tp or model.intermediate % tp:
            continue
        for pp in _divisors(gpus // tp):
            if pp > model.layers:
                continue
            dp = gpus // tp // pp
            if sequences % dp:
                continue
            yield from _of_split(model, dp, tp, pp, sequences // dp)


def _of_split(model: Model, dp: int, tp: int, pp: int, per_rank: int) -> Iterator[Configuration]:
    stages = (0,) if dp == 1 else (0, 1) if pp > 1 else (0, 1, 2, 3)
    experts = [ep for ep in _divisors(dp) if model.experts % ep == 0] if model.experts > 1 else [1]
    for micro_batch in _divisors(per_rank):
        if micro_batch > MOST_MICRO_BATCH:
            break
        for sequence_parallel in (False, True) if tp > 1 else (False,):
            recomputed = RECOMPUTE if sequence_parallel else (NOTHING, EVERYTHING)
            for ep in experts:
                for zero in stages:
                    for recompute in recomputed:
                        yield Configuration(
                            dp, tp, pp, ep, sequence_parallel, zero, micro_batch, per_rank // micro_batch, recompute
                        )


def _divisors(number: int) -> list[int]:
    small = [each for each in range(1, int(number**0.5) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})
