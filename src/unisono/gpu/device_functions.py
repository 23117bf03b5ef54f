"""Kernels that work on whole arrays: compiled at the first use, launched on torch's current stream."""

from __future__ import annotations

import ctypes
import functools
from importlib import import_module
from typing import Any

import torch

from unisono.errors import UsageError
from unisono.gpu import coding_messages as messages
from unisono.gpu.nvrtc import image_of

THREADS = 512  # of a block (kernel/grid.cuh)
MOST_BLOCKS = 2**31 - 1  # of a launch


def launch(
    source: str,
    macros: tuple[str, ...],
    name: str,
    blocks: int,
    device: torch.device,
    *arguments: torch.Tensor | int | float | None,
) -> None:
    """Launch a kernel of ``kernel/<source>``, compiled with ``macros``, on the current stream of a device.

    The kernel's parameters are pointers (None is a null one) and numbers: whole ones have 64 bits, others are
    floats. The tensors must stay allocated until the stream has used them; torch keeps those of this stream.
    """
    driver = _driver()
    given = [each.data_ptr() if isinstance(each, torch.Tensor) else each or 0 for each in arguments]
    types = [ctypes.c_float if isinstance(each, float) else ctypes.c_uint64 for each in arguments]
    with torch.cuda.device(device):
        function = _function(source, macros, name, device.index)
        stream = torch.cuda.current_stream(device).cuda_stream
        grid = min(blocks, MOST_BLOCKS)
        _check(
            driver.cuLaunchKernel(
                function, grid, 1, 1, THREADS, 1, 1, 0, stream, (tuple(given), tuple(types)), 0
            ),
            name,
        )  # fmt: skip


@functools.cache
def multiprocessors(device: int) -> int:
    """Return the number of multiprocessors of a device."""
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


@functools.cache
def _function(source: str, macros: tuple[str, ...], name: str, device: int) -> Any:
    """Return a kernel; the device is torch's current one, so that its context is the current one."""
    module = _module(source, macros, device)
    (function,) = _check(_driver().cuModuleGetFunction(module, name.encode()), name)
    return function


@functools.cache
def _module(source: str, macros: tuple[str, ...], device: int) -> Any:
    torch.cuda.current_stream(device).query()  # makes the context
    image = image_of(source, macros, *torch.cuda.get_device_capability(device))
    (module,) = _check(_driver().cuModuleLoadData(image), source)
    return module


@functools.cache
def _driver() -> Any:
    try:
        return import_module("cuda.bindings.driver")
    except ImportError:
        raise UsageError(messages.NO_BINDINGS()) from None


def _check(result: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    """Return the results of a function of the driver; raise RuntimeError if it failed."""
    status, *values = result
    if int(status) != 0:
        raise RuntimeError(messages.LAUNCH_FAILED(kernel=what, error=status.name))
    return tuple(values)
