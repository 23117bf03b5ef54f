"""Measure how long a job takes to continue after a fault.

python tools/measure_shrink.py                  8 ranks: one rank killed, two ranks killed, a rank stopped, one joins
python tools/measure_shrink.py --restore        the cost of all_reduce(on_failure="restore"), 2 ranks

Times are in milliseconds: the median and the largest of all trials. A trial counts the slowest rank.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import signal
import statistics
import time
from typing import Any

import numpy as np

import unisono
from unisono.errors import CommError
from unisono.launch.spawn import outcomes_of

TIMEOUT_S = 60.0


def wait_until(moment_s: float) -> None:
    """Return at a time of the clock that all processes share."""
    time.sleep(max(0.0, moment_s - time.monotonic() - 0.01))
    while time.monotonic() < moment_s:
        pass


def common_moment(comm: Any) -> float:
    """Return a time soon, the same on all ranks."""
    moment = np.array([time.monotonic() + 0.2])
    comm.broadcast(moment)
    return float(moment[0])


def lose(comm: Any, victims: list[int], stops: bool, limit_s: float) -> tuple[float, float, float] | None:
    """Lose ranks; return the seconds from the fault to the error, of shrink, and from the fault to a result."""
    x = np.ones(1000)
    processes = np.zeros(comm.size, np.int64)
    comm.all_gather(processes, np.array([os.getpid()]))
    moment_s = common_moment(comm)
    if comm.rank in victims:
        wait_until(moment_s)
        os.kill(os.getpid(), signal.SIGSTOP if stops else signal.SIGKILL)
        return None
    comm.timeout = limit_s
    try:
        while True:
            comm.all_reduce(x)
    except CommError:
        told_s = time.monotonic()
    smaller = comm.shrink()
    made_s = time.monotonic()
    smaller.all_reduce(x)
    done_s = time.monotonic()
    if stops and smaller.rank == 0:
        for victim in victims:
            os.kill(int(processes[victim]), signal.SIGKILL)
    return told_s - moment_s, made_s - told_s, done_s - moment_s


def visit(address: str) -> None:
    """Join and leave."""
    with unisono.join(address) as comm:
        comm.all_reduce(np.ones(1000))
        os._exit(0)


def grow(comm: Any) -> tuple[float, float, float]:
    """Admit a process that waits already; return 0, the seconds of grow, and those to the first result."""
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    comm.grow()
    process = multiprocessing.get_context("fork").Process(target=visit, args=(comm.join_address,))
    if comm.rank == 0:
        process.start()
    time.sleep(1.0)
    began_s = time.monotonic()
    grown = comm.grow()
    made_s = time.monotonic() - began_s
    grown.all_reduce(np.ones(1000))
    done_s = time.monotonic() - began_s
    if comm.rank == 0:
        process.join()
    return 0.0, made_s, done_s


def measure(name: str, trials: int, function: Any, size: int, *args: Any) -> None:
    """Print a row for a fault."""
    rows = []
    for _ in range(trials):
        outcomes = outcomes_of(function, size, *args, timeout=TIMEOUT_S, patience_s=5.0, oversubscribe=True)
        values = [outcome.value for outcome in outcomes if outcome.value is not None]
        rows.append([max(times) * 1e3 for times in zip(*values, strict=True)])
    cells = [f"{statistics.median(column):.0f}, {max(column):.0f}" for column in zip(*rows, strict=True)]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def time_calls(comm: Any, nbytes: int, calls: int) -> list[tuple[float, float]]:
    """Return the seconds of a call without and with a copy, taken in turns."""
    x = np.ones(nbytes // 4, np.float32)
    found = []
    for _ in range(calls):
        times = []
        for keywords in ({}, {"on_failure": "restore"}):
            comm.barrier()
            began_s = time.perf_counter()
            comm.all_reduce(x, op="avg", **keywords)
            times.append(time.perf_counter() - began_s)
        found.append((times[0], times[1]))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", dest="size", type=int, default=8, help="ranks (default: 8)")
    parser.add_argument("--trials", type=int, default=20, help="of each fault (default: 20)")
    parser.add_argument("--restore", action="store_true", help="measure the cost of restoring arrays instead")
    args = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    load = os.getloadavg()[0]
    print(f"{platform.processor() or platform.machine()}, {cores} cores, load average {load:.1f} at the start\n")
    if args.restore:
        print("| bytes | all_reduce, µs | with restore, µs | ratio |\n|--:|--:|--:|--:|")
        for nbytes in (8, 64 << 10, 1 << 20, 16 << 20, 64 << 20):
            calls = max(5, min(200, (256 << 20) // nbytes))
            pairs = outcomes_of(time_calls, 2, nbytes, calls)[0].value
            plain, kept = (statistics.median(column) * 1e6 for column in zip(*pairs, strict=True))
            ratio = statistics.median(second / first for first, second in pairs)
            print(f"| {nbytes} | {plain:.0f} | {kept:.0f} | {ratio:.2f} |", flush=True)
        return
    columns = "until every rank has the error | shrink or grow | from the fault to the next result"
    print(f"| fault, {args.size} ranks, {args.trials} trials | {columns} |")
    print("|---|--:|--:|--:|")
    size = args.size
    measure("a rank is killed", args.trials, lose, size, [size // 2], False, TIMEOUT_S)
    measure("rank 0 is killed", args.trials, lose, size, [0], False, TIMEOUT_S)
    measure("two ranks are killed", args.trials, lose, size, [0, size - 1], False, TIMEOUT_S)
    measure("a rank is stopped, timeouts of 0.5 s", args.trials, lose, size, [1], True, 0.5)
    measure("a process joins", args.trials, grow, size)


if __name__ == "__main__":
    main()
