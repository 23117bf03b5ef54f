"""An optimiser of shards must treat every element by itself: found out by trying.

::

    elements   0 1 2 3 4 5 6      an optimiser like the given one makes three steps
    elements   0 1 2              another one makes the same steps on the first of them alone: the same numbers?

SGD, Adam, AdamW and RMSprop pass. What looks at the norm of a parameter (LAMB, Adafactor), of all parameters, or at
their shape (Muon, Shampoo), or at dot products (LBFGS) would compute other numbers on a shard than on the whole.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from unisono.errors import UsageError

STEPS = 3
WHOLE, SHARD = 7, 3  # elements
# Relative to the numbers themselves. An elementwise operation may round differently at the end of a vector.
TOLERANCE = 1e-4


def check_elementwise(optimizer: Any, device: Any, who: str) -> None:
    """Raise unless an optimiser of the same class and settings gives a part of a vector the values of the whole."""
    name = type(optimizer).__name__
    skip = "if it treats every element by itself all the same, give check_optimizer=False"
    try:
        with torch.random.fork_rng(devices=[]):
            whole, part = (_after_steps(optimizer, count, device) for count in (WHOLE, SHARD))
    except Exception as error:
        raise UsageError(
            f"{who}: {name} could not be tried on a vector of {WHOLE} elements ({type(error).__name__}: {error}); "
            f"expected an optimiser that can be made again from its defaults and updates a vector in step(); {skip}"
        ) from error
    if not torch.allclose(whole[:SHARD], part, rtol=TOLERANCE, atol=0.0, equal_nan=True):
        raise UsageError(
            f"{who}: {name} gives a part of a vector other values ({part.tolist()}) than the whole of it "
            f"({whole[:SHARD].tolist()}), so it cannot work on shards; use an optimiser that treats every element by "
            f"itself (SGD, Adam, AdamW, RMSprop), or DataParallel; {skip}"
        )


def _after_steps(optimizer: Any, count: int, device: Any) -> Tensor:
    """Return the values of the first elements after some steps of an optimiser like the given one."""
    # Numbers of very different size, so that any norm of the part is far from that of the whole.
    values = torch.tensor([1.0, -2.0, 0.5, 40.0, -30.0, 7.0, 90.0], device=device)[:count]
    gradients = torch.tensor([0.3, 0.1, -0.7, 5.0, 20.0, 0.01, -3.0], device=device)[:count]
    parameter = nn.Parameter(values)
    again = type(optimizer)([parameter], **_settings_of(optimizer))
    with torch.enable_grad():
        for step in range(STEPS):
            parameter.grad = gradients * (step + 1)
            again.step()
    return parameter.detach()


def _settings_of(optimizer: Any) -> dict[str, Any]:
    """Return what the class of the optimiser takes of its defaults; with a learning rate that moves something."""
    taken = inspect.signature(type(optimizer)).parameters
    takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in taken.values())
    settings = {name: value for name, value in optimizer.defaults.items() if takes_all or name in taken}
    return {**settings, "lr": 0.1} if "lr" in settings else settings
