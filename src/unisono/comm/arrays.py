"""Arrays as the engine sees them: an address, a number of elements, the name of a type, a device.

Numpy arrays, torch tensors on the CPU or on a CUDA device, and objects with ``__cuda_array_interface__`` (CuPy,
Numba) are accepted alike, without importing torch.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from unisono.codecs.arrays import address_of
from unisono.comm import gpu_messages, messages
from unisono.errors import UsageError
from unisono.message import Message, listed
from unisono.reductions import ELEMENT_BYTES as ELEMENT_BYTES

ANY_DEVICE = -1  # of an empty CUDA array without an address: it is on whichever device the call uses


class Array(NamedTuple):
    """The facts about an array that the engine needs."""

    address: int
    length: int  # elements
    dtype: str
    owner: Any = None  # the object that owns the memory; it must live as long as the call
    device: int | None = None  # the ordinal of a CUDA device; None: the CPU

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return self.length * ELEMENT_BYTES[self.dtype]

    def overlaps(self, other: Array) -> bool:
        """Return whether the two arrays share memory."""
        if not self.length or not other.length:
            return False
        return self.address < other.address + other.nbytes and other.address < self.address + self.nbytes


NO_ARRAY = Array(0, 0, "uint8")


def array_of(given: Any, name: str, writable: bool) -> Array:
    """Describe an array, or raise UsageError if the engine cannot use it as it is.

    ``name`` is the array's name in errors; ``writable``: the call writes into it.
    """
    if isinstance(given, np.ndarray):
        found = _of_numpy(given, name, writable)
    elif hasattr(given, "data_ptr") and hasattr(given, "is_contiguous"):
        found = _of_torch(given, name, writable)
    elif hasattr(given, "__cuda_array_interface__"):
        found = _of_cuda_interface(given, name, writable)
    else:
        raise UsageError(messages.NOT_AN_ARRAY(array=name, kind=type(given).__name__))
    if found.dtype not in ELEMENT_BYTES:
        raise UsageError(messages.NO_SUCH_DTYPE(array=name, dtype=found.dtype, known=listed(ELEMENT_BYTES)))
    return found


def _of_numpy(given: np.ndarray[Any, Any], name: str, writable: bool) -> Array:
    if type(given) is not np.ndarray and isinstance(given, np.ma.MaskedArray):
        raise UsageError(messages.MASKED_ARRAY(array=name))
    if not given.flags.c_contiguous:
        raise UsageError(messages.NOT_CONTIGUOUS_ARRAY(array=name, shape=given.shape, strides=given.strides))
    if writable and not given.flags.writeable:
        raise UsageError(messages.READ_ONLY_ARRAY(array=name))
    if not given.dtype.isnative:
        raise UsageError(messages.FOREIGN_BYTE_ORDER(array=name, dtype=given.dtype.str))
    return Array(given.__array_interface__["data"][0], given.size, given.dtype.name, given)


def _of_torch(given: Any, name: str, writable: bool) -> Array:
    if not given.is_cpu and not given.is_cuda:
        raise UsageError(messages.NOT_ON_CPU(array=name, device=given.device))
    address = address_of(given, name)
    if not given.is_contiguous():
        shape, strides = tuple(given.shape), given.stride()
        raise UsageError(messages.NOT_CONTIGUOUS_TENSOR(array=name, shape=shape, strides=strides))
    if given.is_neg() or given.is_conj():
        given = _resolved(given, name, writable)
        address = given.data_ptr()
    device = None if given.is_cpu else given.get_device()
    return Array(address, given.numel(), _dtype_name(given.dtype), given, device)


def _resolved(given: Any, name: str, writable: bool) -> Any:
    """Return an input whose memory holds its values; those of a lazy view are computed from its memory."""
    if writable:
        raise UsageError(messages.LAZY_VIEW(array=name, bit="conjugate" if given.is_conj() else "negative"))
    return given.detach().resolve_conj().resolve_neg()


@functools.cache
def _dtype_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _of_cuda_interface(given: Any, name: str, writable: bool) -> Array:
    interface = given.__cuda_array_interface__
    shape, strides = tuple(interface["shape"]), interface.get("strides")
    address, read_only = interface["data"]
    dtype = np.dtype(interface["typestr"])
    if interface.get("mask") is not None:
        raise UsageError(messages.MASKED_ARRAY(array=name))
    if strides is not None and not _is_contiguous(shape, tuple(strides), dtype.itemsize):
        raise UsageError(gpu_messages.NOT_CONTIGUOUS(array=name, shape=shape, strides=tuple(strides)))
    if writable and read_only:
        raise UsageError(messages.READ_ONLY_ARRAY(array=name))
    if not dtype.isnative:
        raise UsageError(messages.FOREIGN_BYTE_ORDER(array=name, dtype=dtype.str))
    # numpy has no letter for some types, such as bfloat16; the array itself knows the name.
    dtype_name = str(getattr(given, "dtype", dtype)) if dtype.kind == "V" else dtype.name
    device = _device_of(int(address or 0), name)
    return Array(int(address or 0), math.prod(shape), dtype_name, given, device)


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Return whether the elements lie behind one another, in the order of C."""
    expected = itemsize
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length > 1 and stride != expected:
            return 0 in shape
        expected *= length
    return True


def _device_of(address: int, name: str) -> int:
    """Return the CUDA device on which an address lies."""
    if not address:
        return ANY_DEVICE
    from unisono.gpu.driver import cuda_driver  # most programs need no GPU

    device = cuda_driver().device_of(address)
    if device < 0:
        raise UsageError(gpu_messages.NOT_DEVICE_MEMORY(array=name))
    return device


def device_name(device: int | None) -> Message:
    """Return the name of a device in errors."""
    return gpu_messages.THE_CPU() if device is None else gpu_messages.A_CUDA_DEVICE(device=max(device, 0))
