"""The CUDA driver of this process, found when the first CUDA array is used."""

from __future__ import annotations

import functools

from unisono import _engine
from unisono.errors import UsageError
from unisono.gpu import connection_messages as messages

LIBRARY = "libcuda.so.1"
GpuEvent = _engine.GpuEvent  # marks a place in a stream


def cuda_driver() -> _engine.GpuDriver:
    """Return the CUDA driver; raise UsageError if this machine has none that works."""
    try:
        return _opened(LIBRARY)
    except _engine.GpuUnavailable as error:
        raise UsageError(messages.NO_DRIVER(reason=str(error))) from None


@functools.cache
def _opened(library: str) -> _engine.GpuDriver:
    return _engine.GpuDriver(library)
