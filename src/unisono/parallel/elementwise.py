"""Tests whether an optimiser treats every element independently, as an optimiser of shards must.

::

    elements   0 1 2 3 4 5 6      an optimiser of the same class and settings makes three steps
    elements   0 1 2              another one makes the same steps on the first elements; the values must be the same

SGD, Adam, AdamW and RMSprop pass. An optimiser that uses the norm of one or all parameters (LAMB, Adafactor), their
shape (Muon, Shampoo) or dot products (LBFGS) computes other values on a shard than on the whole.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from unisono.errors import UsageError
from unisono.parallel.zero_messages import NOT_ELEMENTWISE, OPTIMIZER_NOT_TRIED

STEPS = 3
WHOLE, SHARD = 7, 3  # elements
# Relative tolerance: an elementwise operation may round differently at the end of a vector.
TOLERANCE = 1e-4


def check_elementwise(optimizer: Any, device: Any) -> None:
    """Raise unless an optimiser of this class and settings updates a part of a vector as it updates the whole."""
    name = type(optimizer).__name__
    try:
        with torch.random.fork_rng(devices=[]):
            whole, part = (_after_steps(optimizer, count, device) for count in (WHOLE, SHARD))
    except Exception as error:
        description = f"{type(error).__name__}: {error}"
        raise UsageError(OPTIMIZER_NOT_TRIED(name=name, count=WHOLE, error=description)) from error
    if not torch.allclose(whole[:SHARD], part, rtol=TOLERANCE, atol=0.0, equal_nan=True):
        raise UsageError(NOT_ELEMENTWISE(name=name, part=part.tolist(), whole=whole[:SHARD].tolist()))


def _after_steps(optimizer: Any, count: int, device: Any) -> Tensor:
    """Return the first elements after some steps of an optimiser of the same class and settings."""
    # Values of very different magnitude, so that the norms of the part and of the whole differ much.
    values = torch.tensor([1.0, -2.0, 0.5, 40.0, -30.0, 7.0, 90.0], device=device)[:count]
    gradients = torch.tensor([0.3, 0.1, -0.7, 5.0, 20.0, 0.01, -3.0], device=device)[:count]
    parameter = nn.Parameter(values)
    second = type(optimizer)([parameter], **_settings_of(optimizer))
    with torch.enable_grad():
        for step in range(STEPS):
            parameter.grad = gradients * (step + 1)
            second.step()
    return parameter.detach()


def _settings_of(optimizer: Any) -> dict[str, Any]:
    """Return the defaults that the class of the optimiser accepts, with a learning rate that is not 0."""
    accepted = inspect.signature(type(optimizer)).parameters
    accepts_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in accepted.values())
    settings = {name: value for name, value in optimizer.defaults.items() if accepts_all or name in accepted}
    return {**settings, "lr": 0.1} if "lr" in settings else settings
