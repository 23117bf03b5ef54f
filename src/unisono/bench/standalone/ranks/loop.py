"""The timed loop, the same for all libraries."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .buffers import Buffers
from .library import Library
from .tensors import make_buffers

BATCHES = 10  # of the calls of a trial, where a call returns before it is done
LATENCY_CALLS = 100


def check(library: Library, buffers: Buffers, call: Callable[[], object]) -> int:
    """Run the collective once on the test vectors and count wrong elements."""
    if not library.communicates:
        return 0
    buffers.fill()
    buffers.synchronize()
    library.barrier()
    call()
    buffers.synchronize()
    wrong = buffers.wrong()
    buffers.clear()
    return wrong


def time_calls(call: Callable[[], object], iterations: int) -> list[int]:
    """Return the nanoseconds of every call."""
    clock = time.perf_counter_ns
    readings = [0] * (iterations + 1)
    readings[0] = clock()
    for index in range(1, len(readings)):
        call()
        readings[index] = clock()
    found: list[int] = np.diff(readings).tolist()
    return found


def time_batches(call: Callable[[], object], iterations: int, synchronize: Callable[[], None]) -> list[float]:
    """Enqueue many calls and wait for all of them once, several times; return the nanoseconds per call of each."""
    batch = max(1, iterations // BATCHES)
    found = []
    for _ in range(max(1, iterations // batch)):
        began = time.perf_counter_ns()
        for _ in range(batch):
            call()
        synchronize()
        found.append((time.perf_counter_ns() - began) / batch)
    return found


def measure(library: Library, command: dict[str, Any]) -> dict[str, Any]:
    """Execute a command; return the nanoseconds of every call, the mean between barriers, and the wrong elements."""
    buffers = make_buffers(command, library.rank, library.size)
    call = library.call(buffers, command)
    wrong = check(library, buffers, call) if command["check"] else 0
    for _ in range(command["warmup"]):
        call()
    buffers.synchronize()
    iterations = command["iterations"]
    latencies: list[float] = []
    gc.collect()
    gc.disable()
    library.barrier()
    began = time.perf_counter_ns()
    if buffers.is_asynchronous:
        nanoseconds: list[Any] = time_batches(call, iterations, buffers.synchronize)
        library.barrier()
        ended = time.perf_counter_ns()
        for _ in range(min(iterations, LATENCY_CALLS)):  # one call at a time
            latencies += time_batches(call, 1, buffers.synchronize)
        library.barrier()
    else:
        nanoseconds = time_calls(call, iterations)
        library.barrier()
        ended = time.perf_counter_ns()
    gc.enable()
    if command["check"]:
        wrong += check(library, buffers, call)
    answer = {"nanoseconds": nanoseconds, "mean_ns": (ended - began) / iterations, "wrong": wrong}
    return {**answer, "latency_ns": float(np.median(latencies))} if latencies else answer
