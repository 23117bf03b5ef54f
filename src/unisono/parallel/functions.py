"""The autograd functions of tensor parallelism: pairs of collectives, one for each direction.

::

    function                         forward pass                          backward pass, of the gradient

    nothing_then_all_reduce          x ─────────────────────────> x        sum   <── all-reduce ────── addends
    all_reduce_then_nothing          addends ── all-reduce ─────> sum      same  <──────────────────── same
    all_gather_then_reduce_scatter   parts ──── all-gather ─────> whole    part  <── reduce-scatter ── addends
    reduce_scatter_then_all_gather   addends ── reduce-scatter ─> part     whole <── all-gather ────── parts
    all_gather_then_split            parts ──── all-gather ─────> whole    part  <──────────────────── whole
    split_then_all_gather            whole ─────────────────────> part     whole <── all-gather ────── parts

Ranks hold a tensor in one of three forms: the same *whole* on each rank, *parts* of it, or *addends* whose sum it
is. If a split computation uses a whole, the gradient of the whole consists of addends; if addends are summed to a
whole, its gradient is the same whole on every rank. So the first two functions mirror each other, as do the third
and the fourth. ``x_then_y`` means: x in the forward pass, y in the backward pass.

Each function takes a tensor, the group or the split it works on, and the name under which ``record()`` lists it.
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
    """Use one or several wholes of one dtype in a split computation; one all-reduce sums all their gradients.

    ``tensors``: the wholes. ``group``: the ranks. ``name``: their name in the log of ``record()``.
    """

    def back(*gradients: Tensor) -> tuple[Tensor, ...]:
        return summed(gradients, group, gradient_of(name), "backward")

    results = pair(lambda *same: tuple(each.view_as(each) for each in same), back, *tensors)
    return results[0] if len(tensors) == 1 else results


def all_reduce_then_nothing(tensor: Tensor, *, group: Group, name: str) -> Tensor:
    """Sum the addends of all ranks to a whole.

    ``tensor``: the addend. ``group``: the ranks. ``name``: its name in the log of ``record()``.
    """
    return pair(lambda addend: summed((addend,), group, name, "forward")[0], lambda gradient: gradient, tensor)


def all_gather_then_reduce_scatter(tensor: Tensor, *, split: Split, name: str) -> Tensor:
    """Gather the parts to a whole that a split computation uses.

    ``tensor``: this rank's part. ``split``: how the whole is split. ``name``: its name in the log of ``record()``.
    """
    return pair(
        lambda part: split.gather(part, name=name, phase="forward"),
        lambda gradient: split.sum_and_scatter(gradient, name=gradient_of(name), phase="backward"),
        tensor,
    )


def reduce_scatter_then_all_gather(tensor: Tensor, *, split: Split, name: str) -> Tensor:
    """Sum the addends of all ranks; return this rank's part of the sum.

    ``tensor``: the addend. ``split``: how the whole is split. ``name``: its name in the log of ``record()``.
    """
    return pair(
        lambda addend: split.sum_and_scatter(addend, name=name, phase="forward"),
        lambda gradient: split.gather(gradient, name=gradient_of(name), phase="backward"),
        tensor,
    )


def all_gather_then_split(tensor: Tensor, *, split: Split, name: str) -> Tensor:
    """Gather the parts to a whole with which every rank computes the same.

    ``tensor``: this rank's part. ``split``: how the whole is split. ``name``: its name in the log of ``record()``.
    """
    return pair(lambda part: split.gather(part, name=name, phase="forward"), split.cut, tensor)


def split_then_all_gather(tensor: Tensor, *, split: Split, name: str) -> Tensor:
    """Return this rank's part of a whole that is the same on every rank.

    ``tensor``: the whole. ``split``: how the whole is split. ``name``: its name in the log of ``record()``.
    """
    return pair(split.cut, lambda gradient: split.gather(gradient, name=gradient_of(name), phase="backward"), tensor)


def gradient_of(name: str) -> str:
    """Return the name of a gradient in the log."""
    return f"gradient of {name}"


def summed(tensors: tuple[Tensor, ...], group: Group, name: str, phase: str) -> tuple[Tensor, ...]:
    """Sum tensors over all ranks by one all-reduce; return new tensors."""
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
        results = ctx.back(*gradients)
        return None, None, *(results if isinstance(results, tuple) else (results,))
