"""A small model and toy data, the same on every rank, for tests that train."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

FEATURES = 8


def small_model(seed: int = 1) -> nn.Module:
    """Return a model whose parameters depend on the seed alone."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(FEATURES, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4))


def batch(rank: int, step: int, rows: int = 6) -> tuple[Tensor, Tensor]:
    """Return the inputs and targets of a rank in a step."""
    source = torch.Generator().manual_seed(1000 * rank + step)
    return torch.randn(rows, FEATURES, generator=source), torch.randn(rows, 4, generator=source)


def train(
    model: Callable[[Tensor], Tensor], optimizer: torch.optim.Optimizer, rank: int, steps: int = 4, first: int = 0
) -> Tensor:
    """Train for some steps; return the losses."""
    losses = []
    for step in range(first, first + steps):
        inputs, targets = batch(rank, step)
        optimizer.zero_grad()
        loss = mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


def parameters_of(model: nn.Module) -> list[Tensor]:
    """Return copies of the parameters."""
    return [parameter.detach().clone() for parameter in model.parameters()]
