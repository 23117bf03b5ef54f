"""Times calls on CUDA tensors, on all ranks of a communicator alike.

A call on a GPU returns when it is enqueued. A *run* enqueues many calls and then waits for all of them once; its
result is the time divided by the number of calls, on the slowest rank.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from unisono.comm.communicator import Communicator

RUNS = 5
RUN_S = 0.04  # the length of a run that its number of calls aims at
MOST_CALLS = 500
HOST_CALLS = 1000
BURST = 20  # calls before the GPU is waited for, so that its queue is never full


class Timer:
    """Times calls on the ranks of a communicator; ``device`` "cpu" is for tests of the tools."""

    def __init__(self, comm: Communicator, device: str) -> None:
        self.control = comm.duplicate()  # its calls on the CPU are independent of the measured ones
        self.on_gpu = device == "cuda"

    def synchronize(self) -> None:
        """Wait until this rank's GPU has finished."""
        if self.on_gpu:
            torch.cuda.synchronize()

    def together(self) -> None:
        """Wait for all ranks, after their GPU work."""
        self.synchronize()
        self.control.barrier()

    def on_slowest(self, value: float) -> float:
        """Return the largest of the values of all ranks."""
        largest = np.array([value])
        self.control.all_reduce(largest, op="max")
        return float(largest[0])

    def run_us(self, call: Callable[[], object], calls: int) -> float:
        """Return the microseconds per call of one run, on the slowest rank."""
        self.together()
        began = time.perf_counter()
        for _ in range(calls):
            call()
        self.synchronize()
        return self.on_slowest((time.perf_counter() - began) / calls * 1e6)

    def runs_us(self, call: Callable[[], object], runs: int = RUNS, run_s: float = RUN_S) -> list[float]:
        """Return the microseconds per call of several runs, after a warm-up."""
        for _ in range(2):
            call()
        estimate_us = self.run_us(call, 2)
        calls = max(1, min(MOST_CALLS, int(run_s * 1e6 / estimate_us)))
        self.run_us(call, calls)
        return [self.run_us(call, calls) for _ in range(runs)]

    def host_us(self, call: Callable[[], object]) -> float:
        """Return the median time in which a call returns to the host, in microseconds, on this rank."""
        times: list[int] = []
        for number in range(HOST_CALLS + BURST):
            if number % BURST == 0:
                self.together()
            began = time.perf_counter_ns()
            call()
            if number >= BURST:
                times.append(time.perf_counter_ns() - began)
        self.together()
        return statistics.median(times) / 1000

    def close(self) -> None:
        """Close the communicator that the timer uses."""
        self.control.close()


def copy_rate(timer: Timer, device: str, nbytes: int) -> float:
    """Return the bytes per second that a copy in the memory of the GPU reads and writes; rank 0 measures alone."""
    rate = 0.0
    timer.together()
    if timer.control.rank == 0:
        source = torch.zeros(nbytes, dtype=torch.uint8, device=device)
        copy = torch.empty_like(source)
        best_s = float("inf")
        for _ in range(4):
            timer.synchronize()
            began = time.perf_counter()
            for _ in range(5):
                copy.copy_(source)
            timer.synchronize()
            best_s = min(best_s, (time.perf_counter() - began) / 5)
        rate = 2 * nbytes / best_s
        del source, copy
        if timer.on_gpu:
            torch.cuda.empty_cache()
    return timer.on_slowest(rate)


def buffers(collective: str, nbytes: int, size: int, device: str) -> tuple[Any, ...]:
    """Return the tensors of a collective on a vector of float32, as its method takes them; they hold zeros."""
    count = max(1, nbytes // (4 * size)) * size
    whole = torch.zeros(count, device=device)
    if collective in ("all_reduce", "broadcast"):
        return (whole,)
    part = torch.zeros(count // size, device=device)
    if collective == "all_gather":
        return whole, part
    if collective == "reduce_scatter":
        return part, whole
    return torch.zeros_like(whole), whole  # all_to_all


def is_wrong(collective: str, tensors: tuple[Any, ...], call: Callable[[], object], rank: int, size: int) -> bool:
    """Run a collective on small integers, and return whether an element of its result is wrong; zeros come back."""
    given, got = tensors[-1], tensors[0]
    given.fill_(rank + 1)
    call()
    if collective in ("all_reduce", "reduce_scatter"):
        expected = torch.full_like(got, size * (size + 1) // 2)
    elif collective == "broadcast":
        expected = torch.ones_like(got)
    else:
        ones = torch.arange(1, size + 1, device=got.device, dtype=got.dtype)
        expected = ones.repeat_interleave(len(got) // size)
    wrong = not torch.equal(got, expected)
    for tensor in tensors:
        tensor.zero_()
    return wrong
