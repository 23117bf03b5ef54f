"""Whole models of torch modules in one process, with which the tests compare tensor-parallel ones.

Their parameters have the names and, with the same seed, the values that ``full_state_dict`` returns for the
split ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from unisono.parallel import full_state_dict


class WholeMLP(nn.Module):
    def __init__(self, features: int, hidden: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(features, hidden), nn.Linear(hidden, features)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.gelu(self.up(x)))


class WholeAttention(nn.Module):
    def __init__(self, features: int, heads: int, causal: bool = True) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(features, 3 * features), nn.Linear(features, features)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5
        if self.causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -torch.inf)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class WholeBlock(nn.Module):
    def __init__(self, features: int, heads: int, causal: bool = True) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(features), WholeAttention(features, heads, causal)
        self.norm2, self.mlp = nn.LayerNorm(features), WholeMLP(features, 4 * features)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class WholeTransformer(nn.Module):
    def __init__(self, vocabulary: int, features: int, heads: int, layers: int, longest: int, causal: bool = True):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(vocabulary, features), nn.Embedding(longest, features)
        self.blocks = nn.ModuleList(WholeBlock(features, heads, causal) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(features), nn.Linear(features, vocabulary, bias=False)

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        x = self.embedding(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def train(model: nn.Module, loss_of: Callable[[Any, int], Tensor], steps: int = 20) -> list[float]:
    """Train by SGD with momentum; return the losses.

    Adam is unsuitable: the gradient of a key's bias is zero except for rounding, which Adam turns into large steps.
    """
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-3)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, step)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def difference(split: nn.Module, whole: nn.Module) -> float:
    """Return the largest difference between parameters of the two."""
    found, expected = full_state_dict(split), whole.state_dict()
    assert found.keys() == expected.keys()
    return max(float((found[name] - expected[name]).abs().max()) for name in expected)


def train_both(
    make_split: Callable[[], nn.Module], make_whole: Callable[[], nn.Module],
    loss_of: Callable[[Any, int], Tensor], dtype: torch.dtype,
    split_loss_of: Callable[[Any, int], Tensor] | None = None,
) -> tuple[float, float, float]:  # fmt: skip
    """Make both from one seed and train them; return the differences of initial and final parameters, and of losses.

    Fail if training changes nothing.
    """
    torch.set_default_dtype(dtype)
    torch.manual_seed(1)
    split = make_split()
    torch.manual_seed(1)
    whole = make_whole()
    first = difference(split, whole)
    losses, expected = train(split, split_loss_of or loss_of), train(whole, loss_of)
    assert abs(expected[-1] - expected[0]) > 0.05
    return first, difference(split, whole), max(abs(a - b) for a, b in zip(losses, expected, strict=True))
