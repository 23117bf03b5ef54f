"""Float32 arrays as codecs take them: numpy arrays and torch CPU tensors alike; torch is not imported for that."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unisono.errors import UsageError


def floats_of(given: Any, who: str, *, writable: bool = False) -> NDArray[np.float32]:
    """Return a flat view of an array, or raise UsageError if codecs cannot use it as it is."""
    array = given
    if hasattr(given, "data_ptr") and hasattr(given, "detach"):  # a torch tensor
        if given.device.type != "cpu":
            raise UsageError(f"{who} is on {given.device}; expected a tensor on the CPU")
        if str(given.dtype) != "torch.float32":  # numpy has no name for some
            raise UsageError(f"{who} has dtype {given.dtype}; codecs are for float32")
        address_of(given, who)
        if writable and given.is_neg():
            raise UsageError(f"{who} is a view with the negative bit set; expected a tensor whose memory can be used")
        array = given.detach().resolve_neg().numpy()
    if not isinstance(array, np.ndarray):
        raise UsageError(f"{who} is a {type(given).__name__}; expected a numpy array or a torch CPU tensor")
    if array.dtype != np.float32 or not array.dtype.isnative:
        raise UsageError(f"{who} has dtype {array.dtype}; codecs are for float32")
    if not array.flags.c_contiguous:
        raise UsageError(f"{who} is not contiguous (shape {array.shape}); pass a contiguous copy")
    if writable and not array.flags.writeable:
        raise UsageError(f"{who} is read-only; expected an array that can be written")
    return array.reshape(-1)


def address_of(tensor: Any, who: str) -> int:
    """Return the address of a torch tensor, or raise UsageError if not all of its elements lie in memory.

    They do not in a tensor whose storage was freed or shrunk, nor in one that only stands for another tensor.
    """
    try:
        address, held_bytes = tensor.data_ptr(), tensor.untyped_storage().nbytes()
        if address and held_bytes == tensor.nbytes and tensor.is_contiguous() and not tensor.is_nested:
            return int(address)  # it fills its storage, as most do
        first, count = tensor.storage_offset(), tensor.numel()
        if count and not tensor.is_contiguous():
            count = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    except RuntimeError as error:  # NotImplementedError is one
        raise UsageError(f"{who} is a {type(tensor).__name__} without memory; expected a dense tensor") from error
    if tensor.is_nested:
        raise UsageError(f"{who} is a nested tensor; expected a dense one")
    if count == 0:
        return int(address)
    needed_bytes = (first + count) * tensor.itemsize
    if needed_bytes > held_bytes:
        raise UsageError(
            f"{who} needs a storage of {needed_bytes} bytes and its storage has {held_bytes}: it was freed or shrunk "
            "(untyped_storage().resize_); give it its memory back before the call"
        )
    if address == 0:
        raise UsageError(f"{who} is a {type(tensor).__name__} without memory; expected a dense tensor")
    return int(address)
