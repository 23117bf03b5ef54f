"""Loss scaling for Zero: all ranks skip a step if the gradients of one shard are infinite.

torch's GradScaler looks at the gradients that its rank has. With Zero that is one shard: one rank would skip the
step, and the others would wait for its parameters.
"""

from __future__ import annotations

from typing import Any

import torch

from unisono.errors import UsageError
from unisono.parallel.zero import Zero


class ShardedGradScaler(torch.amp.GradScaler):
    """A ``torch.amp.GradScaler`` for the optimiser of a Zero; ``settings`` are those of torch's.

    Use it as torch's: ``scale(loss).backward()``, ``step(zero.optimizer)``, ``update()``; with ``clip_grad_norm``,
    ``unscale_(zero.optimizer)`` comes before it. All ranks make these calls.
    """

    def __init__(self, zero: Zero, **settings: Any) -> None:
        super().__init__(zero.trained[0].device.type, **settings)
        self.zero = zero

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients by the scale, and find out whether any rank has one that is not finite."""
        self._check(optimizer)
        if not self.is_enabled():
            return
        self.zero.publish_gradients()
        super().unscale_(optimizer)
        for found in self._found_inf_per_device(optimizer).values():
            for group in self.zero.all_groups:
                group.all_reduce(found, op="max", name="(is a gradient infinite)", phase="update")

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Update the parameters unless a gradient of any rank is not finite."""
        self._check(optimizer)
        with self.zero.unscaled_steps():
            return super().step(optimizer, *args, **kwargs)

    def _check(self, optimizer: Any) -> None:
        if optimizer is not self.zero.optimizer:
            raise UsageError(
                f"ShardedGradScaler: got a {type(optimizer).__name__}; expected zero.optimizer, of the Zero that it "
                "was made for"
            )
