"""Measure what recording costs: the same calls with and without it, in turns, in one run.

A visit is a number of calls in a row, timed as a whole, on rank 0. Visits with and without a recording follow each
other, so that both meet the same neighbours; each pair has the other one first. Shown are the median of all visits
and the quick ones (what one in twenty was quicker than), and what of the time recording adds: to the quick visits,
and as the median over the pairs. (The engine is asked directly, so that no file is written.)
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import unisono

EVENTS = 1 << 15
WARM_UP = 5
KIB = 1024
# The largest message is half of an all-reduce on two ranks, and all of a broadcast.
CASES: dict[str, tuple[str, int]] = {
    "all_reduce, 8 B": ("all_reduce", 8),
    "all_reduce, messages of 512 B": ("all_reduce", KIB),
    "all_reduce, messages of 4 KiB": ("all_reduce", 8 * KIB),
    "all_reduce, messages of 64 KiB": ("all_reduce", 128 * KIB),
    "all_reduce with bf16, messages of 64 KiB": ("bf16", 256 * KIB),
    "broadcast, messages of 64 KiB": ("broadcast", 64 * KIB),
    "all_reduce, 16 MiB in segments": ("all_reduce", 16 * KIB * KIB),
    "send and recv, 64 KiB": ("transfer", 64 * KIB),
}


def call_of(comm: Any, kind: str, nbytes: int) -> Callable[[], object]:
    """Return a call of all ranks."""
    x = np.zeros(nbytes // 4, np.float32)
    if kind == "bf16":
        return lambda: comm.all_reduce(x, codec="bf16")
    if kind == "broadcast":
        return lambda: comm.broadcast(x)
    if kind == "all_reduce":
        return lambda: comm.all_reduce(x)

    def there_and_back() -> None:
        if comm.rank == 0:
            comm.send(x, 1)
            comm.recv(x, 1)
        else:
            comm.recv(x, 0)
            comm.send(x, 0)

    return there_and_back


def visit(comm: Any, call: Callable[[], object], calls: int, recorded: bool) -> float:
    """Return the seconds of a call, of so many in a row."""
    endpoint = comm.calls.link.endpoint
    recording = endpoint.start_event_log(EVENTS)  # in any case: what that does to the caches is not what we measure
    if not recorded:
        endpoint.stop_event_log(recording)
    for _ in range(WARM_UP):
        call()
    comm.barrier()
    began = time.perf_counter()
    for _ in range(calls):
        call()
    seconds = (time.perf_counter() - began) / calls
    comm.barrier()
    if recorded:
        endpoint.stop_event_log(recording)
    return seconds


def measure(comm: Any, kind: str, nbytes: int, pairs: int, visit_s: float) -> tuple[list[float], list[float]]:
    """Return the seconds of a call in each visit, without and with a recording."""
    call = call_of(comm, kind, nbytes)
    quickest = min(visit(comm, call, 20, False) for _ in range(10))
    calls = np.array([max(10.0, visit_s / quickest)])
    comm.broadcast(calls)  # all must make as many
    plain, recorded = [], []
    for pair in range(pairs):
        for with_recording in (pair % 2 == 0, pair % 2 == 1):
            (recorded if with_recording else plain).append(visit(comm, call, int(calls[0]), with_recording))
    return plain, recorded


def quick(visits: list[float]) -> float:
    """Return what one visit in twenty was quicker than."""
    return float(np.quantile(visits, 0.05))


def measured(name: str, pairs: int, visit_s: float, size: int) -> dict[str, Any]:
    """Return a row of the table."""
    plain, recorded = unisono.spawn(measure, size, *CASES[name], pairs, visit_s)[0]
    return {
        "case": name,
        "ranks": size,
        "median_us": statistics.median(plain) * 1e6,
        "quick_us": quick(plain) * 1e6,
        "recorded_median_us": statistics.median(recorded) * 1e6,
        "recorded_quick_us": quick(recorded) * 1e6,
        "quick_adds": quick(recorded) / quick(plain) - 1,
        "pairs_add": statistics.median(with_ / without for without, with_ in zip(plain, recorded, strict=True)) - 1,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=2, help="ranks (default 2)")
    parser.add_argument("--pairs", type=int, default=400, help="visits of either kind (default 400)")
    parser.add_argument("--visit", type=float, default=0.001, metavar="S", help="seconds of a visit (default 0.001)")
    parser.add_argument("--case", action="append", choices=list(CASES), help="only this one (may be repeated)")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = [measured(name, args.pairs, args.visit, args.n) for name in args.case or CASES]
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{args.n} ranks, {args.pairs} visits of {args.visit * 1e3:g} ms with and without a recording, in turns\n")
    print("| calls | µs without: median | quick | µs with: median | quick | adds: quick | pairs |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        print(
            f"| {row['case']} | {row['median_us']:.2f} | {row['quick_us']:.2f} | "
            f"{row['recorded_median_us']:.2f} | {row['recorded_quick_us']:.2f} | "
            f"{row['quick_adds']:+.1%} | {row['pairs_add']:+.1%} |"
        )


if __name__ == "__main__":
    main()
