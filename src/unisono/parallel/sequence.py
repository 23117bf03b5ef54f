"""Sequence parallel: the layers between tensor-parallel ones are split as well, along the sequence.

::

    shard ─ norm ─┐ all-gather ┌─ column ─ heads or hidden ─ row ─┐ reduce-scatter ┌─ dropout ─ + ─ shard
                  └────────────┘                                  └────────────────┘
    1/size of the positions      all positions, 1/size of the features             1/size of the positions

Every rank holds the weight of a norm and applies it to different positions, so its gradient is a sum over the ranks.
``SequenceLayerNorm`` computes that sum, with one all-reduce of weight and bias together in the backward pass.
"""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn

from unisono.parallel.functions import nothing_then_all_reduce
from unisono.parallel.group import group_of


class SequenceLayerNorm(nn.LayerNorm):
    """A layer norm of which every rank normalises its shard of the sequence.

    ``features``, ``options``: the arguments of ``nn.LayerNorm``.
    ``group``: the ranks that share the sequence.
    ``name``: its name in the log of ``record()``.
    """

    def __init__(self, features: Any, group: Any, *, name: str = "norm", **options: Any) -> None:
        super().__init__(features, **options)
        self.group, self.name = group_of(group), name

    def forward(self, x: Tensor) -> Tensor:
        """Normalise ``x``; the backward pass sums the gradients of the parameters over the ranks."""
        weight, bias = self.weight, self.bias
        if weight is not None and bias is not None:
            weight, bias = nothing_then_all_reduce(weight, bias, group=self.group, name=f"{self.name} (parameters)")
        elif weight is not None:
            weight = nothing_then_all_reduce(weight, group=self.group, name=f"{self.name} (parameters)")
        return F.layer_norm(x, self.normalized_shape, weight, bias, self.eps)
