"""Tensors as the engine sees them.

A user's tensor is never turned into a numpy array: that would mark its memory as not resizable, which FSDP relies on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

from unisono.comm.arrays import ELEMENT_BYTES
from unisono.errors import UsageError

Tensor: TypeAlias = torch.Tensor
Finish = Callable[[], None]

KNOWN = {getattr(torch, name): name for name in ELEMENT_BYTES if hasattr(torch, name)}


def check(tensor: Any, who: str) -> Tensor:
    """Return the tensor, if it is one that this backend can use."""
    if not torch.is_tensor(tensor):
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


def in_one_piece(parts: list[Tensor]) -> tuple[Tensor, Finish | None]:
    """Return memory for all of them, and what is to be done once it is full."""
    total = sum(part.numel() for part in parts)
    if total and adjacent(parts):
        return parts[0], None
    memory = torch.empty(total, dtype=parts[0].dtype)
    return memory, lambda: spread(parts, memory)


def overlap(first: Tensor, second: Tensor) -> bool:
    """Whether the two share memory."""
    start, other = first.data_ptr(), second.data_ptr()
    return bool(start < other + second.nbytes and other < start + first.nbytes)


def as_list(tensors: Any) -> list[Any]:
    """Return what torch gave, a tensor or several, as a list."""
    return [tensors] if torch.is_tensor(tensors) else list(tensors)


def check_list(what: str, name: str, parts: Any, like: Any, size: int) -> list[Tensor]:
    """Return one tensor for each rank, all of the same type."""
    if len(parts) != size:
        raise UsageError(f"{what}: {len(parts)} tensors as {name}; expected {size}, one for each rank")
    for place, part in enumerate(parts):
        if check(part, f"{what}: {name} {place}").dtype != like.dtype:
            raise UsageError(f"{what}: {name} {place} is {part.dtype}; expected {like.dtype}")
    return list(parts)


def check_equal(what: str, name: str, parts: list[Tensor], like: Tensor) -> None:
    """Look whether all are as long as one."""
    for place, part in enumerate(parts):
        if part.numel() != like.numel():
            raise UsageError(f"{what}: {name} {place} has {part.numel()} elements; expected {like.numel()}")


def elements_of_rows(what: str, name: str, tensor: Tensor, splits: Any, size: int) -> tuple[int, ...]:
    """Return how many elements go to, or come from, each rank; ``splits`` are rows."""
    rows = tensor.shape[0] if tensor.dim() else 1
    if not splits:
        if rows % size:
            raise UsageError(
                f"{what}: {rows} rows of the {name} do not divide into {size} equal parts; give the splits"
            )
        splits = [rows // size] * size
    if len(splits) != size or sum(splits) != rows or min(splits) < 0:
        raise UsageError(
            f"{what}: {name}_split_sizes={list(splits)}; expected {size} numbers of rows that make {rows} together"
        )
    each = tensor.numel() // rows if rows else 0
    return tuple(count * each for count in splits)


def check_whole(what: str, names: tuple[str, str], whole: Tensor, part: Tensor, size: int) -> None:
    """Look whether one tensor has what the other one has on each of so many ranks."""
    if whole.numel() != part.numel() * size or whole.dtype != part.dtype:
        raise UsageError(
            f"{what}: the {names[0]} has {whole.numel()} {whole.dtype} and the {names[1]} {part.numel()} "
            f"{part.dtype}; expected {size} times as many, of the same type"
        )
