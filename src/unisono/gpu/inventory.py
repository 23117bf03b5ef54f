"""The GPUs of this machine, as `unisono info` shows them, and the mode in which ranks would use them.

Asking the driver initializes it in this process; a process that forks ranks must not do that before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Mode = Literal["kernel", "stream"]


@dataclass(frozen=True)
class Gpu:
    """A GPU, as this process sees it."""

    ordinal: int
    name: str
    uuid: str  # hexadecimal digits
    multiprocessors: int
    major: int  # of the compute capability
    minor: int
    memory_bytes: int
    mps: bool  # this process reaches it through MPS
    peers: tuple[bool, ...]  # whether it can access the memory of each GPU, by ordinal; its own included


class NoGpus(Exception):
    """This machine has no GPU that this process can use."""


def find_gpus() -> list[Gpu]:
    """Return the GPUs of this machine; raise NoGpus, with the reason, if there are none."""
    # imported here, as everywhere: `import unisono` is fast
    from unisono import _engine
    from unisono.gpu.driver import LIBRARY

    try:
        devices = _engine.GpuDriver(LIBRARY).devices()
    except _engine.GpuUnavailable as error:
        raise NoGpus(str(error)) from error
    return [
        Gpu(
            device["ordinal"], device["name"], device["uuid"], device["multiprocessors"], device["major"],
            device["minor"], device["memory_bytes"], device["mps"], tuple(device["peers"]),
        )
        for device in devices
    ]  # fmt: skip


def mode_of_shared_gpu(gpus: Sequence[Gpu]) -> Mode:
    """Return the mode of ranks that share a GPU: a kernel may wait for another one only if both run at once."""
    return "kernel" if gpus and all(gpu.mps for gpu in gpus) else "stream"


def pairs_without_access(gpus: Sequence[Gpu]) -> list[tuple[int, int]]:
    """Return the pairs of GPUs of which the first cannot access the memory of the second."""
    return [
        (gpu.ordinal, other.ordinal)
        for gpu in gpus
        for other in gpus
        if gpu is not other and not gpu.peers[other.ordinal]
    ]
