"""The memory of parameters, gradients and optimiser on a rank, by formula; tests/parallel/test_memory.py measures it.

::

    bytes for each of Ψ parameters, on N ranks       mixed precision with Adam          float32 with Adam
                                                     p    g    o                        p   g   o
    stage 0    everything on every rank              2  + 2  + 12        = 16           4 + 4 + 8      = 16
    stage 1    the optimiser's state is sharded      2  + 2  + 12/N      = 4 + 12/N     4 + 4 + 8/N    = 8 + 8/N
    stage 2    and the gradients                     2  + (2 + 12)/N     = 2 + 14/N     4 + (4 + 8)/N  = 4 + 12/N
    stage 3    and the parameters                    (2 + 2 + 12)/N      = 16/N         (4 + 4 + 8)/N  = 16/N

``unisono.parallel.memory`` measures the same quantities on real ranks. This module does not import torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """Bytes per parameter of a training setup."""

    parameters: int
    gradients: int
    optimizer: int


MIXED_ADAM = Kind(2, 2, 12)
FLOAT32_ADAM = Kind(4, 4, 8)
MIXED_ADAM_ACCUMULATED = Kind(2, 6, 12)  # gradients of several micro-batches add up in float32
KINDS = {"mixed": MIXED_ADAM, "float32": FLOAT32_ADAM, "accumulated": MIXED_ADAM_ACCUMULATED}
ALIGNMENT = 64  # bytes: a unit buffer begins at a multiple


@dataclass(frozen=True)
class HeldMemory:
    """Bytes that a rank holds between the backward pass and the step."""

    parameters: int
    gradients: int
    optimizer: int
    unit_buffers: int = 0  # for whole units (stage 3)
    gradient_buffers: int = 0  # for gradients that are being averaged (stages 2 and 3)

    @property
    def total(self) -> int:
        """The bytes that the formulas describe: without buffers."""
        return self.parameters + self.gradients + self.optimizer


def formula(stage: int, parameters: int, ranks: int, kind: Kind = MIXED_ADAM) -> HeldMemory:
    """Return the bytes of a rank; ``parameters`` includes the padding, so it is a multiple of the ranks."""
    share = parameters // ranks
    return HeldMemory(
        kind.parameters * (share if stage >= 3 else parameters),
        kind.gradients * (share if stage >= 2 else parameters),
        kind.optimizer * (share if stage >= 1 else parameters),
    )


def padded(units: Sequence[int], ranks: int) -> int:
    """Return the parameters of all units, each padded to a multiple of the ranks."""
    return sum(_padded(numel, ranks) for numel in units)


def with_buffers(stage: int, root: int, units: Sequence[int], ranks: int, kind: Kind = MIXED_ADAM) -> HeldMemory:
    """Return the bytes of a rank, buffers included; ``root`` and ``units`` are numbers of parameters.

    Stage 3 keeps room for the root and for two whole units, stages 2 and 3 for two vectors of gradients.
    """
    everything = [root, *units]
    held = formula(stage, padded(everything, ranks) if stage else sum(everything), ranks if stage else 1, kind)
    if stage < 2:
        return held
    vectors = [_padded(numel, ranks) * kind.parameters for numel in everything]
    largest = sorted(vectors[1:], reverse=True)[:2]
    unit_buffers = sum(-(-each // ALIGNMENT) * ALIGNMENT for each in [vectors[0], *largest])
    return HeldMemory(
        held.parameters, held.gradients, held.optimizer, unit_buffers if stage == 3 else 0, 2 * max(vectors)
    )


def _padded(numel: int, ranks: int) -> int:
    return -(-numel // ranks) * ranks
