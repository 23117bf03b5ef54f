"""A straightforward mixture of experts: one process computes all rows, one row at a time."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class NaiveMixture(nn.Module):
    def __init__(self, router: nn.Linear, experts: list[nn.Module], top_k: int, capacity_factor: float | None):
        super().__init__()
        self.router, self.experts = router, nn.ModuleList(experts)
        self.top_k, self.capacity_factor = top_k, capacity_factor

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, int]:
        """Return the outputs of all rows, the balance loss, and the number of dropped choices."""
        probabilities = self.router(x).softmax(-1)
        weights, chosen = probabilities.topk(self.top_k)
        if self.top_k > 1:
            weights = weights / weights.sum(-1, keepdim=True)
        room = math.inf
        if self.capacity_factor is not None:
            room = math.ceil(self.capacity_factor * self.top_k * len(x) / len(self.experts))
        taken, dropped = [0] * len(self.experts), 0
        outputs = [torch.zeros_like(row) for row in x]
        for choice in range(self.top_k):
            for row in range(len(x)):
                expert = int(chosen[row, choice])
                if taken[expert] == room:
                    dropped += 1
                    continue
                taken[expert] += 1
                result = self.experts[expert](x[row : row + 1])[0]
                outputs[row] = outputs[row] + weights[row, choice] * result
        share = torch.bincount(chosen.flatten(), minlength=len(self.experts)) / chosen.numel()
        balance = len(self.experts) * (share * probabilities.mean(0)).sum()
        return torch.stack(outputs), balance, dropped
