"""The model with a mixture of experts in place of each MLP: more parameters, each character uses some."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from language.model import GPT, MLP, Shape
from unisono.parallel import MixtureOfExperts

BALANCE = 0.01  # weight of the loss that keeps the experts equally busy


class Mixture(MixtureOfExperts):
    """A mixture that stores its balance loss, so that it can replace an MLP."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the experts."""
        result = super().forward(x)
        self.balance_loss = result.balance_loss
        return result.output


class MixtureGPT(GPT):
    """A GPT whose experts are distributed over the ranks of a group."""

    def __init__(self, shape: Shape, group: Any) -> None:
        super().__init__(
            shape, lambda: Mixture.of(shape.features, shape.experts, lambda: MLP(shape.features), group, top_k=2)
        )

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> Tensor:
        """Return the loss including the balance loss; without targets, the logits."""
        result = super().forward(ids, targets)
        return result if targets is None else result + BALANCE * sum(block.mlp.balance_loss for block in self.blocks)
