"""Ranks with fake GPUs: whole jobs on CUDA arrays, in real processes, on any machine."""

from __future__ import annotations

import ctypes
import fcntl
import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpu import fake_driver, host_kernel
from gpu.fake_arrays import CudaArray
from gpu.fake_driver import FakeDriver
from rank_pool import RankPool
from unisono.launch.spawn import Outcome, outcomes_of

# Ranks that share a GPU use kernel mode under MPS, and stream mode without it.
MODES = {"kernel": "mps=1", "stream": "mps=0"}
# The kernels that tests use: a build for the host takes a second. Other reductions are tested without processes.
KERNELS = (("float32", "sum"), ("float32", "max"), ("float32", "avg"), ("int64", "prod"), ("bfloat16", "sum"))


def host_image(dtype: str, reduction: str | None, wire: str | None, most: int, *_: object) -> bytes:
    """Return the image of a kernel that the fake driver accepts."""
    with (fake_driver.library().parent / "kernel_lock").open("w") as lock:  # one rank builds it for all
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = host_kernel.library_path(dtype, reduction, wire, most)
    return f"host-kernel:{ctypes.sizeof(host_kernel.structures(most).launch)}:{path}".encode() + b"\0"


@functools.cache
def start_gpu(settings: str = "", device: int = 0) -> FakeDriver:
    """Give this process fake GPUs; the arguments are those of ``fake_driver.start``."""
    import unisono.gpu.connection

    unisono.gpu.connection.kernel_image = host_image
    return fake_driver.start(settings, device)


def _run_with_gpu(comm: Any, settings: Sequence[str], function: Callable[..., Any], *args: Any) -> Any:
    driver = start_gpu(settings[comm.rank])
    value = function(comm, driver, *args)
    assert driver.fake_misuses() == 0
    return value


def outcomes_on_gpus(
    function: Callable[..., Any], size: int, *args: Any, settings: str | Sequence[str] = "", timeout: float = 60.0,
    patience_s: float = 10.0, start: str = "fork",
) -> list[Outcome]:  # fmt: skip
    """Run ``function(comm, driver, *args)`` on ranks with fake GPUs; return the outcome of every rank.

    ``settings`` are those of ``fake_driver.start``: the same for all ranks, or one of each rank.
    """
    fake_driver.library()  # built once, before the ranks need it
    of_each = [settings] * size if isinstance(settings, str) else settings
    return outcomes_of(
        _run_with_gpu, size, of_each, function, *args, timeout=timeout, patience_s=patience_s, start=start
    )


def run_on_gpus(function: Callable[..., Any], size: int, *args: Any, **options: Any) -> list[Any]:
    """Run a function like ``outcomes_on_gpus``; return the value of every rank, or raise the first error."""
    outcomes = outcomes_on_gpus(function, size, *args, **options)
    for rank, outcome in enumerate(outcomes):
        assert outcome.error is None, f"rank {rank}: {outcome.error!r}\n{outcome.story}"
    return [outcome.value for outcome in outcomes]


def _start(_comm: Any, settings: str) -> int:
    start_gpu(settings)
    return os.getpid()


class GpuPools:
    """Ranks with fake GPUs that stay alive between tests, by number and mode."""

    def __init__(self) -> None:
        self._pools: dict[tuple[int, str], RankPool] = {}

    def __getitem__(self, key: tuple[int, str]) -> RankPool:
        pool = self._pools.get(key)
        if pool is not None and pool.failed:
            pool.close()
            pool = None
        if pool is None:
            size, mode = key
            fake_driver.library()
            pool = self._pools[key] = RankPool(size)
            pool.call(_start, [MODES[mode]] * size)
        return pool

    def close(self) -> None:
        """End all ranks."""
        for pool in self._pools.values():
            pool.close()


def on_gpu(values: np.ndarray | None, *, stream: int = 0, shareable: bool = True) -> CudaArray | None:
    """Return a copy of an array on the GPU of this process, which ``start_gpu`` has started."""
    if values is None:
        return None
    return CudaArray(this_gpu(), values, stream=stream, shareable=shareable)


def this_gpu() -> FakeDriver:
    """Return the driver of this process."""
    return FakeDriver()
