"""A parameter that raises when its gradient is read while the gradient is in shards.

In stages 2 and 3 no rank has the whole gradient of a parameter, and ``parameter.grad`` would be None after a backward
pass. Programs take that for "no gradient": ``torch.nn.utils.clip_grad_norm_(zero.parameters())`` would return 0 and
clip nothing, and an optimiser of ``zero.parameters()`` would update nothing. So reading it is an error.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from unisono.errors import UsageError
from unisono.parallel.zero_messages import GRADIENT_IN_SHARDS

_GRAD: Any = Tensor.grad


def gradient_of(parameter: Any) -> Any:
    """Return the gradient that autograd left in a parameter on this rank, or None."""
    return _GRAD.__get__(parameter)


def set_gradient(parameter: Any, gradient: Tensor | None) -> None:
    """Set the gradient that autograd adds to."""
    _GRAD.__set__(parameter, gradient)


class ShardedParameter(nn.Parameter):
    """A parameter of stages 2 and 3; its ``flat`` records whether the gradient is in shards."""

    flat: Any = None
    name: str = ""

    @property
    def grad(self) -> Any:
        """The gradient of this rank, before the ranks average it (``no_sync``)."""
        self._check()
        return gradient_of(self)

    @grad.setter
    def grad(self, gradient: Tensor | None) -> None:
        self._check()
        set_gradient(self, gradient)

    @grad.deleter
    def grad(self) -> None:
        self._check()
        set_gradient(self, None)

    def _check(self) -> None:
        if self.flat is not None and self.flat.has_gradient:
            raise UsageError(GRADIENT_IN_SHARDS(name=self.name))


def guard_gradients(flat: Any) -> None:
    """Make the parameters of a flat raise when a gradient in shards is read."""
    for member in flat.members:
        if type(member.parameter) in (nn.Parameter, ShardedParameter):  # a user's own class is left unchanged
            member.parameter.__class__ = ShardedParameter
            member.parameter.flat, member.parameter.name = flat, member.names[0]
