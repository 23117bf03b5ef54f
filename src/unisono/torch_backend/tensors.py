"""Tensors as the engine sees them.

A user's tensor is never turned into a numpy array: that would mark its memory as not resizable, which FSDP relies on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from unisono.comm.arrays import ELEMENT_BYTES
from unisono.errors import UsageError

Tensor = torch.Tensor
Finish = Callable[[], None]

KNOWN = {getattr(torch, name): name for name in ELEMENT_BYTES if hasattr(torch, name)}


def check(tensor: Any, who: str) -> Tensor:
    """Return the tensor, if it is one that this backend can use."""
    if not isinstance(tensor, Tensor):
        raise UsageError(f"{who}: {type(tensor).__name__}; expected a tensor")
    if not tensor.is_cpu:
        raise UsageError(f"{who}: a tensor on {tensor.device}; the backend unisono takes tensors on the CPU")
    if tensor.layout is not torch.strided:
        raise UsageError(f"{who}: a tensor of layout {tensor.layout}; expected a dense one")
    return tensor


def number_type(tensor: Tensor, who: str) -> str:
    """Return the name of the type for a reduction."""
    name = KNOWN.get(tensor.dtype)
    if name is None:
        raise UsageError(f"{who}: dtype {tensor.dtype}; expected one of {', '.join(ELEMENT_BYTES)}")
    return name


def moved_as(tensor: Tensor) -> tuple[str, int]:
    """Return a type, and how many of it one element is: what is only moved may be of any type, at last as bytes."""
    name = KNOWN.get(tensor.dtype)
    return (name, 1) if name is not None else ("uint8", tensor.element_size())


def contiguous_output(tensor: Tensor, keep: bool) -> tuple[Tensor, Finish | None]:
    """Return memory in one piece for a result, and what remains to be done once it is there.

    ``keep``: what is in the tensor matters, too.
    """
    if tensor.is_contiguous():
        return tensor, None
    memory = tensor.contiguous() if keep else torch.empty_like(tensor, memory_format=torch.contiguous_format)
    return memory, lambda: copy(tensor, memory)


def copy(to: Tensor, source: Tensor) -> None:
    """Write into a tensor, whatever autograd thinks of it."""
    to.detach().copy_(source)


def flat(tensors: Sequence[Tensor]) -> Tensor:
    """Return all of them one after the other, in new memory."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def spread(tensors: Sequence[Tensor], source: Tensor) -> None:
    """Write what lies one after the other into the tensors."""
    start = 0
    for tensor in tensors:
        copy(tensor, source[start : start + tensor.numel()].view(tensor.shape))
        start += tensor.numel()


def adjacent(tensors: Sequence[Tensor]) -> bool:
    """Whether they lie one after the other in memory already, each in one piece."""
    place = tensors[0].data_ptr()
    for tensor in tensors:
        if tensor.data_ptr() != place or not tensor.is_contiguous():
            return False
        place += tensor.nbytes
    return True
