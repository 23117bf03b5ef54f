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
from unisono.message import listed
from unisono.torch_backend import tensor_messages as messages
from unisono.torch_backend.lists import wrong_count

Tensor: TypeAlias = torch.Tensor
Finish = Callable[[], None]

INPUT, OUTPUT = messages.INPUT(), messages.OUTPUT()
KNOWN = {getattr(torch, name): name for name in ELEMENT_BYTES if hasattr(torch, name)}


def check(tensor: Any, call: str) -> Tensor:
    """Return the tensor, if it is one that this backend can use."""
    if not isinstance(tensor, torch.Tensor):
        raise UsageError(messages.NOT_A_TENSOR(call=call, kind=type(tensor).__name__))
    if not (tensor.is_cpu or tensor.is_cuda):
        raise UsageError(messages.NOT_ON_CPU(call=call, device=tensor.device))
    if tensor.layout is not torch.strided:
        raise UsageError(messages.NOT_DENSE(call=call, layout=tensor.layout))
    address_of(tensor, call)
    return tensor


def _check_writable(tensor: Tensor) -> None:
    """Raise UsageError if a tensor cannot hold a result; before anything is sent."""
    if not tensor.is_contiguous() and _repeats_locations(tensor):
        shape, strides = tuple(tensor.shape), tensor.stride()
        raise UsageError(messages.ELEMENTS_SHARE_MEMORY(shape=shape, strides=strides))


def _repeats_locations(tensor: Tensor) -> bool:
    """Return whether two elements of a tensor share a memory location."""
    reach = 0  # from the first to the last location of the dimensions examined so far
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


def number_type(tensor: Tensor, call: str) -> str:
    """Return the name of a tensor's type, for a reduction."""
    name = KNOWN.get(tensor.dtype)
    if name is None:
        raise UsageError(messages.NO_SUCH_DTYPE(call=call, dtype=tensor.dtype, known=listed(ELEMENT_BYTES)))
    return name


def moved_as(tensor: Tensor) -> tuple[str, int]:
    """Return the type as which a tensor is moved, and how many of it make up one element; at worst, bytes."""
    name = KNOWN.get(tensor.dtype)
    if name is not None:
        return name, 1
    if tensor.is_quantized:  # its numbers would be moved, but not the scale that gives them a meaning
        raise UsageError(messages.QUANTIZED(dtype=tensor.dtype))
    return "uint8", tensor.element_size()


def holds_values(tensor: Tensor) -> bool:
    """Return whether the memory of a tensor holds its values, in one piece.

    That of a view with the conjugate or the negative bit set (``z.conj()``, ``z.conj().imag``) does not.
    """
    return tensor.is_contiguous() and not (tensor.is_neg() or tensor.is_conj())


def address_of_values(tensor: Tensor, nbytes: int) -> int:
    """Return the address of a tensor that holds its values, which fill ``nbytes``, in one piece; 0 for any other."""
    if not (
        tensor.layout is torch.strided and not tensor.is_nested and tensor.is_contiguous() and not tensor.is_neg()
        and not tensor.is_conj()
    ):  # fmt: skip
        return 0
    try:
        held_bytes = tensor.untyped_storage().nbytes()
        if held_bytes == nbytes or held_bytes >= nbytes + tensor.storage_offset() * tensor.itemsize:
            return int(tensor.data_ptr())
    except RuntimeError:  # a tensor that stands for another one
        pass
    return 0


def contiguous_input(tensor: Tensor) -> Tensor:
    """Return memory that holds the values of a tensor in one piece: its own, or a copy."""
    return tensor if holds_values(tensor) else separate(tensor)


def separate(tensor: Tensor) -> Tensor:
    """Return the values of a tensor in new memory, in one piece."""
    memory = _new_memory(tensor.shape, tensor)
    copy(memory, tensor)
    return memory


def _new_memory(shape: Sequence[int], like: Tensor) -> Tensor:
    return torch.empty(shape, dtype=like.dtype, device=like.device)  # not on the user's default device


def contiguous_output(tensor: Tensor, keep: bool, apart: bool = False) -> tuple[Tensor, Finish | None]:
    """Return contiguous memory for a result, and what remains to be done once the result is there.

    ``keep``: the memory starts with the tensor's values. ``apart``: use new memory in any case.
    """
    if not apart and holds_values(tensor):
        return tensor, None
    _check_writable(tensor)
    memory = separate(tensor) if keep else _new_memory(tensor.shape, tensor)
    return memory, lambda: copy(tensor, memory)


def copy(to: Tensor, source: Tensor) -> None:
    """Write into a tensor without autograd, also into one that was created in inference mode."""
    with torch.inference_mode():
        to.copy_(source)


def flat(tensors: Sequence[Tensor]) -> Tensor:
    """Return the values of all tensors, one after the other, in new memory."""
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def spread(tensors: Sequence[Tensor], source: Tensor) -> None:
    """Write consecutive values into the tensors."""
    start = 0
    for tensor in tensors:
        copy(tensor, source[start : start + tensor.numel()].view(tensor.shape))
        start += tensor.numel()


def adjacent(tensors: Sequence[Tensor]) -> bool:
    """Return whether the tensors are contiguous and adjacent in memory."""
    place = tensors[0].data_ptr()
    for tensor in tensors:
        if tensor.data_ptr() != place or not holds_values(tensor):
            return False
        place += tensor.nbytes
    return True


def in_one_piece(parts: list[Tensor], apart: bool = False) -> tuple[Tensor, Finish | None]:
    """Return memory for all tensors, and what remains to be done once it is full. ``apart``: use new memory."""
    total = sum(part.numel() for part in parts)
    if total and not apart and adjacent(parts):
        return parts[0], None
    for part in parts:
        _check_writable(part)
    memory = _new_memory((total,), parts[0])
    return memory, lambda: spread(parts, memory)


def share_memory(tensors: Sequence[Tensor]) -> bool:
    """Return whether some tensors may share memory: whether the ranges from first to last element overlap."""
    ranges = sorted(_range_of(tensor) for tensor in tensors if tensor.numel())
    return any(start < end for (_, end), (start, _) in pairwise(ranges))


def read_first(sources: Sequence[Tensor], outs: Sequence[Tensor]) -> tuple[Sequence[Tensor], bool]:
    """Return the inputs of several calls that are made as one, and whether their results need new memory.

    Where the tensors of such calls share memory, all inputs are read first, and then the results are written in
    order: a call must not read what an earlier one has written.
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
    """Return a tensor or several tensors as a list."""
    return [tensors] if torch.is_tensor(tensors) else list(tensors)


def check_list(call: str, name: str, parts: Any, like: Any, size: int) -> list[Tensor]:
    """Return one tensor for each rank, all of the same type."""
    if len(parts) != size:
        raise wrong_count(call, name, len(parts), size)
    for index, part in enumerate(parts):
        if check(part, messages.NUMBERED(call=call, name=name, index=index)).dtype != like.dtype:
            raise UsageError(
                messages.WRONG_TYPE_IN_LIST(call=call, index=index, name=name, dtype=part.dtype, expected=like.dtype)
            )
        if part.device != like.device:
            raise UsageError(messages.TWO_DEVICES(call=call, first=like.device, second=part.device))
    return list(parts)


def check_equal(call: str, name: str, parts: list[Tensor], like: Tensor) -> None:
    """Raise UsageError unless all tensors have the same number of elements as one."""
    for index, part in enumerate(parts):
        if part.numel() != like.numel():
            raise UsageError(
                messages.WRONG_SIZE_IN_LIST(
                    call=call, index=index, name=name, count=part.numel(), expected=like.numel()
                )
            )


def elements_of_rows(call: str, name: str, tensor: Tensor, splits: Any, size: int) -> tuple[int, ...]:
    """Return the number of elements that go to, or come from, each rank; ``splits`` are rows."""
    rows = tensor.shape[0] if tensor.dim() else 1
    if not splits:
        if rows % size:
            raise UsageError(messages.ROWS_NOT_DIVISIBLE(call=call, rows=rows, name=name, size=size))
        splits = [rows // size] * size
    if len(splits) != size or sum(splits) != rows or min(splits) < 0:
        raise UsageError(messages.BAD_SPLITS(call=call, name=str(name), splits=list(splits), size=size, rows=rows))
    each = tensor.numel() // rows if rows else 0
    return tuple(count * each for count in splits)


def check_whole(call: str, names: tuple[str, str], whole: Tensor, part: Tensor, size: int) -> None:
    """Raise UsageError unless one tensor has as many elements as the other has on all ranks together."""
    if whole.numel() != part.numel() * size or whole.dtype != part.dtype:
        raise UsageError(
            messages.NOT_A_MULTIPLE(
                call=call, whole=names[0], whole_count=whole.numel(), whole_dtype=whole.dtype, part=names[1],
                part_count=part.numel(), part_dtype=part.dtype, size=size,
            )
        )  # fmt: skip
