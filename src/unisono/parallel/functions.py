"""What tensor parallelism adds to autograd: pairs of collectives, one for each direction.

::

    function                         forward pass                          backward pass, of the gradient

    nothing_then_all_reduce          x ─────────────────────────> x        sum   <── all-reduce ────── addends
    all_reduce_then_nothing          addends ── all-reduce ─────> sum      same  <──────────────────── same
    all_gather_then_reduce_scatter   parts ──── all-gather ─────> whole    part  <── reduce-scatter ── addends
    reduce_scatter_then_all_gather   addends ── reduce-scatter ─> part     whole <── all-gather ────── parts
    all_gather_then_split            parts ──── all-gather ─────> whole    part  <──────────────────── whole
    split_then_all_gather            whole ─────────────────────> part     whole <── all-gather ────── parts

A tensor lies on the ranks in one of three ways: as the same *whole* on each, as *parts* of it, or as
*addends* whose sum it is. Where a whole enters a computation that is split, its gradient comes back as
addends; where addends are summed to a whole, the gradient is that whole on every rank already. So the first
two lines are each other's mirror image, as are the third and fourth; ``x_then_y`` reads: x in the forward
pass, y in the backward pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import Function, once_differentiable

from unisono.parallel.group import Group
from unisono.parallel.split import Split


def nothing_then_all_reduce(*tensors: Tensor, group: Group, name: str) -> Any:
    """Use a whole (or several, of one dtype) in a computation that is split; their gradients are summed in one go."""

    def back(*gradients: Tensor) -> tuple[Tensor, ...]:
        return summed(gradients, group, gradient_of(name), "backward")

    found = pair(lambda *same: tuple(each.view_as(each) for each in same), back, *tensors)
    return found[0] if len(tensors) == 1 else found


def all_reduce_then_nothing(tensor: Tensor, *, group: Group, name: str) -> Tensor:
    """Sum the addends of all ranks to a whole."""
    return pair(lambda addend: summed((addend,), group, name, "forward")[0], lambda gradient: gradient, tensor)


def all_gather_then_reduce_scatter(tensor: Tensor, *, split: Split, name: str) -> Tensor:
    """Join the parts to a whole that is used in a computation that is split."""
    return pair(
        lambda part: split.gather(part, name=name, phase="forward"),
        lambda gradient: split.sum_and_scatter(gradient, name=gradient_of(name), phase="backward"),
        tensor,
    )


def reduce_scatter_then_all_gather(tensor: Tensor, *, split: Split, name: str) -> Tensor:
    """Sum the addends of all ranks, and keep this rank's part of the sum."""
    return pair(
        lambda addend: split.sum_and_scatter(addend, name=name, phase="forward"),
        lambda gradient: split.gather(gradient, name=gradient_of(name), phase="backward"),
        tensor,
    )


def all_gather_then_split(tensor: Tensor, *, split: Split, name: str) -> Tensor:
    """Join the parts to a whole with which every rank does the same."""
    return pair(lambda part: split.gather(part, name=name, phase="forward"), split.cut, tensor)


def split_then_all_gather(tensor: Tensor, *, split: Split, name: str) -> Tensor:
    """Keep this rank's part of a whole with which every rank did the same."""
    return pair(split.cut, lambda gradient: split.gather(gradient, name=gradient_of(name), phase="backward"), tensor)


def gradient_of(name: str) -> str:
    """Return the name of a gradient in the log."""
    return f"gradient of {name}"


def summed(tensors: tuple[Tensor, ...], group: Group, name: str, phase: str) -> tuple[Tensor, ...]:
    """Sum tensors over all ranks by one all-reduce; return new ones."""
    flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
    group.all_reduce(flat, name=name, phase=phase)
    pieces = flat.split([tensor.numel() for tensor in tensors])
    return tuple(piece.view(tensor.shape) for piece, tensor in zip(pieces, tensors, strict=True))


def pair(there: Callable[..., Any], back: Callable[..., Any], *tensors: Tensor) -> Any:
    """Call ``there`` with the tensors now, and ``back`` with the gradients in the backward pass."""
    return _Pair.apply(there, back, *tensors)


class _Pair(Function):
    @staticmethod
    def forward(ctx: Any, there: Callable[..., Any], back: Callable[..., Any], *tensors: Tensor) -> Any:
        ctx.back = back
        return there(*tensors)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        found = ctx.back(*gradients)
        return None, None, *(found if isinstance(found, tuple) else (found,))
