"""Arrays as the engine sees them: an address, a number of elements, the name of a type.

Numpy arrays and torch CPU tensors are taken alike; torch is not imported for that.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from unisono.codecs.arrays import address_of
from unisono.errors import UsageError

ELEMENT_BYTES = {
    "float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "int8": 1,
    "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8, "bool": 1, "complex64": 8,
    "complex128": 16,
}  # fmt: skip


class Array(NamedTuple):
    """What the engine needs to know of an array."""

    address: int
    length: int  # elements
    dtype: str
    owner: Any = None  # the object that the memory belongs to; it must live as long as the call

    @property
    def nbytes(self) -> int:
        """How many bytes it fills."""
        return self.length * ELEMENT_BYTES[self.dtype]

    def overlaps(self, other: Array) -> bool:
        """Whether the two share memory."""
        if not self.length or not other.length:
            return False
        return self.address < other.address + other.nbytes and other.address < self.address + self.nbytes


NO_ARRAY = Array(0, 0, "uint8")


def array_of(given: Any, who: str, writable: bool) -> Array:
    """Describe an array, or raise UsageError if the engine cannot use it as it is.

    ``writable``: the call writes into it.
    """
    if isinstance(given, np.ndarray):
        found = _of_numpy(given, who, writable)
    elif hasattr(given, "data_ptr") and hasattr(given, "is_contiguous"):
        found = _of_torch(given, who, writable)
    else:
        raise UsageError(f"{who} is a {type(given).__name__}; expected a numpy array or a torch CPU tensor")
    if found.dtype not in ELEMENT_BYTES:
        raise UsageError(f"{who} has dtype {found.dtype}; expected one of {', '.join(ELEMENT_BYTES)}")
    return found


def _of_numpy(given: np.ndarray[Any, Any], who: str, writable: bool) -> Array:
    if type(given) is not np.ndarray and isinstance(given, np.ma.MaskedArray):
        raise UsageError(f"{who} is a masked array, whose mask a call cannot respect; pass x.data or x.filled()")
    if not given.flags.c_contiguous:
        raise UsageError(
            f"{who} is not contiguous (shape {given.shape}, strides {given.strides}); pass "
            "numpy.ascontiguousarray(x), and copy the result back if it is an output"
        )
    if writable and not given.flags.writeable:
        raise UsageError(f"{who} is read-only; expected an array that can be written")
    if not given.dtype.isnative:
        raise UsageError(
            f"{who} has bytes in foreign order ({given.dtype.str}); convert it with "
            "x.astype(x.dtype.newbyteorder('='))"
        )
    return Array(given.__array_interface__["data"][0], given.size, given.dtype.name, given)


def _of_torch(given: Any, who: str, writable: bool) -> Array:
    if not given.is_cpu:
        raise UsageError(f"{who} is on {given.device}; expected a tensor on the CPU")
    address = address_of(given, who)
    if not given.is_contiguous():
        raise UsageError(
            f"{who} is not contiguous (shape {tuple(given.shape)}, strides {given.stride()}); pass x.contiguous()"
        )
    if given.is_neg() or given.is_conj():
        given = _resolved(given, who, writable)
        address = given.data_ptr()
    return Array(address, given.numel(), _dtype_name(given.dtype), given)


def _resolved(given: Any, who: str, writable: bool) -> Any:
    """Return an input whose memory holds its values; those of a lazy view are computed from its memory."""
    if writable:
        bit = "conjugate" if given.is_conj() else "negative"
        raise UsageError(
            f"{who} is a view with the {bit} bit set, whose memory does not hold its values; pass "
            "y = x.resolve_conj().resolve_neg() and copy the result back with x.copy_(y)"
        )
    return given.detach().resolve_conj().resolve_neg()


@functools.cache
def _dtype_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
