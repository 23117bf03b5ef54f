"""The model with a mixture of experts in place of each MLP: more parameters, of which each character uses a few."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from language.model import GPT, MLP, Shape
from unisono.parallel import MixtureOfExperts

BALANCE = 0.01  # how much it matters that all experts are used alike


class Mixture(MixtureOfExperts):
    """A mixture that keeps its balance loss, so that it can stand where an MLP stood."""

    def forward(self, x: Tensor) -> Tensor:
        """Ask the experts."""
        found = super().forward(x)
        self.balance_loss = found.balance_loss
        return found.output


class MixtureGPT(GPT):
    """A GPT whose experts are spread over the ranks of a group."""

    def __init__(self, shape: Shape, group: Any) -> None:
        super().__init__(
            shape, lambda: Mixture.of(shape.features, shape.experts, lambda: MLP(shape.features), group, top_k=2)
        )

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> Tensor:
        """Return the loss, with that for the balance; without targets, the logits."""
        found = super().forward(ids, targets)
        return found if targets is None else found + BALANCE * sum(block.mlp.balance_loss for block in self.blocks)
