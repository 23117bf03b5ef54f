"""Measures warm all-reduces of one communicator, blocking and asynchronous: microseconds per call.

    python tools/measure_calls.py -n 2 --json calls.json

Each line is the median of blocks of calls on rank 0. "start" is the time to start an asynchronous call without
waiting for it. To compare two versions of Unisono, run the program with each, in turns, on a quiet machine; with one
rank and --fastest, it measures what a call costs outside of the collective, also on a machine that is not quiet.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import unisono

OfBlocks = Callable[[list[float]], float]
# Bytes of a vector, calls in a block, blocks.
CASES = ((8, 200, 120), (1 << 10, 200, 60), (1 << 16, 50, 60), (1 << 20, 8, 60), (1 << 24, 1, 25))


def time_us(call: Callable[[], object], calls: int, blocks: int, of_blocks: OfBlocks) -> float:
    """Return the time of a call, after a warm-up."""
    for _ in range(2 * calls):
        call()
    times = []
    for _ in range(blocks):
        began = time.perf_counter_ns()
        for _ in range(calls):
            call()
        times.append((time.perf_counter_ns() - began) / calls / 1000)
    return of_blocks(times)


def measure(comm: unisono.Communicator, of_blocks: OfBlocks) -> dict[str, float]:
    """Return the time of each kind of call, by its name."""
    times = {}
    for nbytes, calls, blocks in CASES:
        x = np.zeros(nbytes // 8)
        times[f"{nbytes} B blocking"] = time_us(lambda x=x: comm.all_reduce(x), calls, blocks, of_blocks)
        times[f"{nbytes} B async"] = time_us(
            lambda x=x: comm.all_reduce(x, async_op=True).wait(), calls, blocks, of_blocks
        )
    x = np.zeros(1)
    times["8 B keywords"] = time_us(lambda: comm.all_reduce(x, op="sum", codec=None), 200, 120, of_blocks)
    x = np.zeros(128)
    starts = []
    for _ in range(60):
        began = time.perf_counter_ns()
        works = [comm.all_reduce(x, async_op=True) for _ in range(100)]
        starts.append((time.perf_counter_ns() - began) / 100 / 1000)
        for work in works:
            work.wait()
    times["1024 B start"] = of_blocks(starts)
    return times


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=2, help="ranks (default: 2)")
    parser.add_argument("--json", type=Path, help="also write the times to this file")
    parser.add_argument("--fastest", action="store_true", help="print the fastest block instead of the median")
    options = parser.parse_args()
    times = unisono.spawn(measure, options.n, min if options.fastest else statistics.median)[0]
    for name, time_us in times.items():
        print(f"{name:>20} {time_us:10.2f} µs")
    if options.json:
        options.json.write_text(json.dumps(times, indent=2) + "\n")
