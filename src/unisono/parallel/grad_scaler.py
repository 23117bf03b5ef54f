"""Loss scaling for Zero: all ranks skip a step if the gradients of one shard are not finite.

torch's GradScaler checks the gradients of its rank, which with Zero are one shard: one rank would skip the step while
the others wait for its parameters.
"""

from __future__ import annotations

from typing import Any

import torch

from unisono.errors import UsageError
from unisono.parallel.zero import Zero
from unisono.parallel.zero_messages import FOREIGN_OPTIMIZER


class ShardedGradScaler(torch.amp.GradScaler):
    """A ``torch.amp.GradScaler`` for the optimiser of a Zero.

    ``zero``: the Zero whose gradients are scaled.
    ``settings``: the keyword arguments of ``torch.amp.GradScaler``.

    Use it like torch's: ``scale(loss).backward()``, ``step(zero.optimizer)``, ``update()``; call
    ``unscale_(zero.optimizer)`` before ``zero.clip_grad_norm``. All ranks make these calls.
    """

    def __init__(self, zero: Zero, **settings: Any) -> None:
        super().__init__(zero.trained[0].device.type, **settings)
        self.zero = zero

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of ``optimizer`` by the scale, and check whether they are finite on all ranks."""
        self._check(optimizer)
        if not self.is_enabled():
            return
        self.zero.publish_gradients()
        super().unscale_(optimizer)
        for found_inf in self._found_inf_per_device(optimizer).values():
            for group in self.zero.all_groups:
                group.all_reduce(found_inf, op="max", name="(is a gradient infinite)", phase="update")

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the step of ``optimizer`` (``zero.optimizer``), unless a gradient of any rank is not finite."""
        self._check(optimizer)
        with self.zero.unscaled_steps():
            return super().step(optimizer, *args, **kwargs)

    def _check(self, optimizer: Any) -> None:
        if optimizer is not self.zero.optimizer:
            raise UsageError(FOREIGN_OPTIMIZER(kind=type(optimizer).__name__))
