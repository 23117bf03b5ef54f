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
        array = given.detach().numpy()
    if not isinstance(array, np.ndarray):
        raise UsageError(f"{who} is a {type(given).__name__}; expected a numpy array or a torch CPU tensor")
    if array.dtype != np.float32 or not array.dtype.isnative:
        raise UsageError(f"{who} has dtype {array.dtype}; codecs are for float32")
    if not array.flags.c_contiguous:
        raise UsageError(f"{who} is not contiguous (shape {array.shape}); pass a contiguous copy")
    if writable and not array.flags.writeable:
        raise UsageError(f"{who} is read-only; expected an array that can be written")
    return array.reshape(-1)
