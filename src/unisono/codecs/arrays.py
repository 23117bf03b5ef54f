"""Views of the float32 arrays that codecs take: numpy arrays and torch CPU tensors, without importing torch."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unisono.codecs import messages
from unisono.errors import UsageError


def floats_of(given: Any, name: str, *, writable: bool = False) -> NDArray[np.float32]:
    """Return a flat view of an array; raise UsageError if codecs cannot use its memory directly."""
    array = given
    if hasattr(given, "data_ptr") and hasattr(given, "detach"):  # a torch tensor
        if given.device.type != "cpu":
            raise UsageError(messages.OTHER_DEVICE(name=name, device=given.device))
        if str(given.dtype) != "torch.float32":  # numpy has no name for some
            raise UsageError(messages.OTHER_DTYPE(name=name, dtype=given.dtype))
        address_of(given, name)
        if writable and given.is_neg():
            raise UsageError(messages.NEGATIVE_VIEW(name=name))
        array = given.detach().resolve_neg().numpy()
    if not isinstance(array, np.ndarray):
        raise UsageError(messages.NOT_AN_ARRAY(name=name, type=type(given).__name__))
    if array.dtype != np.float32 or not array.dtype.isnative:
        raise UsageError(messages.OTHER_DTYPE(name=name, dtype=array.dtype))
    if not array.flags.c_contiguous:
        raise UsageError(messages.NOT_CONTIGUOUS(name=name, shape=array.shape))
    if writable and not array.flags.writeable:
        raise UsageError(messages.READ_ONLY(name=name))
    return array.reshape(-1)


def is_on_cuda(array: Any) -> bool:
    """Return whether an array is in the memory of a CUDA device: a torch tensor, or an array of another library."""
    if isinstance(array, np.ndarray):
        return False
    if hasattr(array, "data_ptr") and hasattr(array, "detach"):
        return bool(array.is_cuda)
    return hasattr(array, "__cuda_array_interface__")


def cuda_coding() -> Any:
    """Return the codecs of CUDA arrays, `unisono.gpu.coding`; raise UsageError if torch, which they need, is missing.

    They are in a package above this one, and few programs need them.
    """
    try:
        return import_module("unisono.gpu.coding")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise UsageError(messages.NEEDS_TORCH()) from None


def address_of(tensor: Any, name: str) -> int:
    """Return the address of a torch tensor; raise UsageError unless all of its elements are in memory.

    They are not if the storage of the tensor was freed or shrunk, or if the tensor only represents another one.
    """
    try:
        address, held_bytes = tensor.data_ptr(), tensor.untyped_storage().nbytes()
        if address and held_bytes == tensor.nbytes and tensor.is_contiguous() and not tensor.is_nested:
            return int(address)  # the usual case: the tensor fills its storage
        first, count = tensor.storage_offset(), tensor.numel()
        if count and not tensor.is_contiguous():
            count = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    except RuntimeError as error:  # NotImplementedError is one
        raise UsageError(messages.NO_MEMORY(name=name, type=type(tensor).__name__)) from error
    if tensor.is_nested:
        raise UsageError(messages.NESTED(name=name))
    if count == 0:
        return int(address)
    needed_bytes = (first + count) * tensor.itemsize
    if needed_bytes > held_bytes:
        raise UsageError(messages.STORAGE_TOO_SMALL(name=name, needed=needed_bytes, found=held_bytes))
    if address == 0:
        raise UsageError(messages.NO_MEMORY(name=name, type=type(tensor).__name__))
    return int(address)
