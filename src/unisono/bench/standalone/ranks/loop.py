"""The timed loop, the same for all libraries."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .buffers import Buffers
from .library import Library


def check(library: Library, buffers: Buffers, call: Callable[[], object]) -> int:
    """Run the collective once on the test vectors and count wrong elements."""
    if not library.communicates:
        return 0
    buffers.fill()
    library.barrier()
    call()
    wrong = buffers.wrong()
    buffers.clear()
    return wrong


def measure(library: Library, command: dict[str, Any]) -> dict[str, Any]:
    """Execute a command; return the nanoseconds of every call, the mean between barriers, and the wrong elements."""
    buffers = Buffers(command, library.rank, library.size)
    call = library.call(buffers, command)
    wrong = check(library, buffers, call) if command["check"] else 0
    for _ in range(command["warmup"]):
        call()
    clock = time.perf_counter_ns
    readings = [0] * (command["iterations"] + 1)
    gc.collect()
    gc.disable()
    library.barrier()
    readings[0] = clock()
    for index in range(1, len(readings)):
        call()
        readings[index] = clock()
    library.barrier()
    ended = clock()
    gc.enable()
    if command["check"]:
        wrong += check(library, buffers, call)
    return {
        "nanoseconds": np.diff(readings).tolist(),
        "mean_ns": (ended - readings[0]) / command["iterations"],
        "wrong": wrong,
    }
