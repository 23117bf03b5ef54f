"""Tensors as the engine sees them.

A user's tensor is never turned into a numpy array: that would mark its memory as not resizable, which FSDP relies on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import torch

from unisono.codecs.arrays import address_of
from unisono.comm.arrays import ELEMENT_BYTES
from unisono.errors import UsageError
from unisono.torch_backend.lists import wrong_count

Tensor: TypeAlias = torch.Tensor
Finish = Callable[[], None]

KNOWN = {getattr(torch, name): name for name in ELEMENT_BYTES if hasattr(torch, name)}


def check(tensor: Any, who: str) -> Tensor:
    """Return the tensor, if it is one that this backend can use."""
    if not isinstance(tensor, torch.Tensor):
        raise UsageError(f"{who}: {type(tensor).__name__}; expected a tensor")
    if not tensor.is_cpu:
        raise UsageError(f"{who}: a tensor on {tensor.device}; the backend unisono takes tensors on the CPU")
    if tensor.layout is not torch.strided:
        raise UsageError(f"{who}: a tensor of layout {tensor.layout}; expected a dense one")
    address_of(tensor, who)
    return tensor


def _check_places(tensor: Tensor) -> None:
    """Raise UsageError if a result cannot be written into a tensor; before anything is sent."""
    if not tensor.is_contiguous() and _repeats_places(tensor):
        raise UsageError(
            f"an output of shape {tuple(tensor.shape)} and strides {tensor.stride()}: several of its elements lie at "
            "one place in memory, so that it cannot hold a result; pass x.clone() of an expanded tensor"
        )


def _repeats_places(tensor: Tensor) -> bool:
    """Whether two elements of a tensor are one in memory."""
    reach = 0  # from the first to the last place of the dimensions looked at so far
    dimensions = sorted(
        (stride, size) for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size > 1
    )
    for stride, size in dimensions:
        if stride <= reach:
            break
        reach += stride * (size - 1)
    else:
        return False
    if dimensions[0][0] == 0:
        return True
    places = np.zeros(1, np.int64)
    for stride, size in dimensions:
        places = np.add.outer(places, np.arange(size, dtype=np.int64) * stride).reshape(-1)
    return bool(np.unique(places).size < places.size)


def number_type(tensor: Tensor, who: str) -> str:
    """Return the name of the type for a reduction."""
    name = KNOWN.get(tensor.dtype)
    if name is None:
        raise UsageError(f"{who}: dtype {tensor.dtype}; expected one of {', '.join(ELEMENT_BYTES)}")
    return name


def moved_as(tensor: Tensor) -> tuple[str, int]:
    """Return a type, and how many of it one element is: what is only moved may be of any type, at last as bytes."""
    name = KNOWN.get(tensor.dtype)
    if name is not None:
        return name, 1
    if tensor.is_quantized:  # its numbers would be moved, but not the scale that gives them a meaning
        raise UsageError(f"a quantized tensor ({tensor.dtype}); pass x.dequantize() or x.int_repr()")
    return "uint8", tensor.element_size()


def holds_values(tensor: Tensor) -> bool:
    """Whether the memory of a tensor holds its values, in one piece.

    That of a view with the conjugate or the negative bit set (``z.conj()``, ``z.conj().imag``) does not.
    """
    return tensor.is_contiguous() and not (tensor.is_neg() or tensor.is_conj())


def contiguous_input(tensor: Tensor) -> Tensor:
    """Return memory that holds the values of a tensor in one piece: its own, or a copy."""
    return tensor if holds_values(tensor) else separate(tensor)


def separate(tensor: Tensor) -> Tensor:
    """Return the values of a tensor in new memory, in one piece."""
    memory = _new_memory(tensor.shape, tensor.dtype)
    copy(memory, tensor)
    return memory


def _new_memory(shape: Sequence[int], dtype: torch.dtype) -> Tensor:
    return torch.empty(shape, dtype=dtype, device="cpu")  # not on the user's default device


def contiguous_output(tensor: Tensor, keep: bool, apart: bool = False) -> tuple[Tensor, Finish | None]:
    """Return memory in one piece for a result, and what remains to be done once it is there.

    ``keep``: what is in the tensor matters, too. ``apart``: in new memory, whatever the tensor is like.
    """
    if not apart and holds_values(tensor):
        return tensor, None
    _check_places(tensor)
    memory = separate(tensor) if keep else _new_memory(tensor.shape, tensor.dtype)
    return memory, lambda: copy(tensor, memory)


def copy(to: Tensor, source: Tensor) -> None:
    """Write into a tensor, whatever autograd thinks of it: also into one made in inference mode."""
    with torch.inference_mode():
        to.copy_(source)


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
        if tensor.data_ptr() != place or not holds_values(tensor):
            return False
        place += tensor.nbytes
    return True


def in_one_piece(parts: list[Tensor], apart: bool = False) -> tuple[Tensor, Finish | None]:
    """Return memory for all of them, and what is to be done once it is full. ``apart``: in any case new memory."""
    total = sum(part.numel() for part in parts)
    if total and not apart and adjacent(parts):
        return parts[0], None
    for part in parts:
        _check_places(part)
    memory = _new_memory((total,), parts[0].dtype)
    return memory, lambda: spread(parts, memory)


def share_memory(tensors: Sequence[Tensor]) -> bool:
    """Whether some of the tensors may: whether the ranges of memory from first to last element meet."""
    ranges = sorted(_range_of(tensor) for tensor in tensors if tensor.numel())
    return any(start < end for (_, end), (start, _) in pairwise(ranges))


def read_first(sources: Sequence[Tensor], outs: Sequence[Tensor]) -> tuple[Sequence[Tensor], bool]:
    """Return the inputs of several calls that are made as one, and whether their results must be kept apart.

    Where the tensors of such calls share memory, all inputs are read first, and then the results are written, in
    their order: a call must not read what an earlier one has written.
    """
    if len(sources) > 1 and share_memory([*sources, *outs]):
        return [separate(source) for source in sources], True
    return sources, False


def _range_of(tensor: Tensor) -> tuple[int, int]:
    start, nbytes = tensor.data_ptr(), tensor.nbytes
    if not tensor.is_contiguous():
        last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        nbytes = (last + 1) * tensor.itemsize
    return start, start + nbytes


def as_list(tensors: Any) -> list[Any]:
    """Return what torch gave, a tensor or several, as a list."""
    return [tensors] if torch.is_tensor(tensors) else list(tensors)


def check_list(what: str, name: str, parts: Any, like: Any, size: int) -> list[Tensor]:
    """Return one tensor for each rank, all of the same type."""
    if len(parts) != size:
        raise wrong_count(what, name, len(parts), size)
    for place, part in enumerate(parts):
        if check(part, f"{what}: {name} {place}").dtype != like.dtype:
            raise UsageError(
                f"{what}: invalid tensor type at index {place}: {name} {place} is {part.dtype}; expected {like.dtype}"
            )
    return list(parts)


def check_equal(what: str, name: str, parts: list[Tensor], like: Tensor) -> None:
    """Look whether all are as long as one."""
    for place, part in enumerate(parts):
        if part.numel() != like.numel():
            raise UsageError(
                f"{what}: invalid tensor size at index {place}: {name} {place} has {part.numel()} elements; expected "
                f"{like.numel()}"
            )


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
