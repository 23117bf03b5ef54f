"""The CUDA stream on which a call on an array belongs.

Tensors of torch belong to torch's current stream. An object with ``__cuda_array_interface__`` states its stream; if
it states none, it belongs to the default stream.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

DEFAULT_STREAM = 0


def _torch() -> Any:
    """Return torch, which has been imported where there is a tensor; programs without torch need none."""
    return sys.modules["torch"]


def is_tensor(array: Any) -> bool:
    """Return whether an array is a tensor of torch."""
    return hasattr(array, "record_stream")


def stream_finder(array: Any, device: int) -> Callable[[], int]:
    """Return a function that returns the handle of the stream on which calls on ``array`` belong at that time."""
    if is_tensor(array):
        return partial(current_torch_stream, device)
    stream = int(array.__cuda_array_interface__.get("stream") or DEFAULT_STREAM)
    return lambda: stream


def current_torch_stream(device: int) -> int:
    """Return the handle of torch's current stream on a device."""
    return int(_torch().cuda.current_stream(device).cuda_stream)


def torch_stream_function() -> Callable[[int], int]:
    """Return the fastest function that returns the handle of torch's current stream on a device."""
    found: Callable[[int], int] = getattr(_torch()._C, "_cuda_getCurrentRawStream", current_torch_stream)
    return found


def keep_for_stream(arrays: Iterable[Any], stream: int, device: int) -> list[Any]:
    """Let torch keep the memory of its tensors until ``stream`` has used it; return the arrays that are no tensors.

    torch's allocator may give the memory of a freed tensor to the next one on the same stream; a tensor that another
    stream uses is recorded for that stream.
    """
    others = []
    external: Any = None
    for array in arrays:
        if array is None:
            continue
        if not is_tensor(array):
            others.append(array)
            continue
        if external is None:
            external = _torch().cuda.ExternalStream(stream, device)
        array.record_stream(external)
    return others
