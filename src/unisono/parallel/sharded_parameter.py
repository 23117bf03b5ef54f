"""A parameter whose gradient is in shards says so when it is read.

In stages 2 and 3 no rank has the whole gradient of a parameter, and ``parameter.grad`` would be None after a backward
pass. Programs read that as "nothing to do": ``torch.nn.utils.clip_grad_norm_(zero.parameters())`` would return 0 and
clip nothing, and an optimiser of ``zero.parameters()`` would update nothing. So reading it is an error.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from unisono.errors import UsageError

_GRAD: Any = Tensor.grad


def gradient_of(parameter: Any) -> Any:
    """Return what autograd has left in a parameter on this rank; None if there is nothing."""
    return _GRAD.__get__(parameter)


def set_gradient(parameter: Any, gradient: Tensor | None) -> None:
    """Set what autograd adds to."""
    _GRAD.__set__(parameter, gradient)


class ShardedParameter(nn.Parameter):
    """A parameter of stages 2 and 3. Its ``flat`` knows whether there is a gradient in shards."""

    flat: Any = None
    name: str = ""

    @property
    def grad(self) -> Any:
        """Return the gradient of this rank, where the ranks have not averaged it (``no_sync``)."""
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
            raise UsageError(
                f"Zero: the gradient of {self.name!r} is in shards, one on each rank, and cannot be read or set as a "
                "whole; use zero.clip_grad_norm(), zero.step() and zero.zero_grad(), or stage=1, which keeps "
                "gradients whole"
            )


def guard_gradients(flat: Any) -> None:
    """Make the parameters of a flat refuse to show a gradient that is in shards."""
    for member in flat.members:
        if type(member.parameter) in (nn.Parameter, ShardedParameter):  # a class of the user's stays as it is
            member.parameter.__class__ = ShardedParameter
            member.parameter.flat, member.parameter.name = flat, member.names[0]
