"""Measure the cost of recording: the same calls with and without it, in turns, in one run.

A trial is a number of consecutive calls on rank 0, timed as a whole. Trials with and without a recording alternate,
so that both share the same disturbances; the order changes from pair to pair. The table shows the median of all
trials, the fast trials (the 5 % quantile), and the part that recording adds to the time: to the fast trials, and as
the median over the pairs. (The engine is called directly, so that no file is written.)
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


def trial(comm: Any, call: Callable[[], object], calls: int, recorded: bool) -> float:
    """Return the seconds per call, of ``calls`` consecutive calls."""
    endpoint = comm.dispatcher.link.endpoint
    recording = endpoint.start_event_log(EVENTS)  # always, so that its effect on the caches is the same in both cases
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


def measure(comm: Any, kind: str, nbytes: int, pairs: int, trial_s: float) -> tuple[list[float], list[float]]:
    """Return the seconds per call in each trial, without and with a recording."""
    call = call_of(comm, kind, nbytes)
    shortest = min(trial(comm, call, 20, False) for _ in range(10))
    calls = np.array([max(10.0, trial_s / shortest)])
    comm.broadcast(calls)  # all ranks must make the same number
    plain, recorded = [], []
    for pair in range(pairs):
        for with_recording in (pair % 2 == 0, pair % 2 == 1):
            (recorded if with_recording else plain).append(trial(comm, call, int(calls[0]), with_recording))
    return plain, recorded


def fast(trials: list[float]) -> float:
    """Return the 5 % quantile of the trials."""
    return float(np.quantile(trials, 0.05))


def measured(name: str, pairs: int, trial_s: float, size: int) -> dict[str, Any]:
    """Return a row of the table."""
    plain, recorded = unisono.spawn(measure, size, *CASES[name], pairs, trial_s)[0]
    return {
        "case": name,
        "ranks": size,
        "median_us": statistics.median(plain) * 1e6,
        "fast_us": fast(plain) * 1e6,
        "recorded_median_us": statistics.median(recorded) * 1e6,
        "recorded_fast_us": fast(recorded) * 1e6,
        "fast_adds": fast(recorded) / fast(plain) - 1,
        "pairs_add": statistics.median(with_ / without for without, with_ in zip(plain, recorded, strict=True)) - 1,
    }


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=2, help="ranks (default 2)")
    parser.add_argument("--pairs", type=int, default=400, help="trials of each kind (default 400)")
    parser.add_argument("--trial", type=float, default=0.001, metavar="S", help="seconds of a trial (default 0.001)")
    parser.add_argument("--case", action="append", choices=list(CASES), help="only this case (may be repeated)")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = [measured(name, args.pairs, args.trial, args.n) for name in args.case or CASES]
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{args.n} ranks, {args.pairs} trials of {args.trial * 1e3:g} ms with and without a recording, in turns\n")
    print("| calls | µs without: median | fast | µs with: median | fast | adds: fast | pairs |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for row in rows:
        print(
            f"| {row['case']} | {row['median_us']:.2f} | {row['fast_us']:.2f} | "
            f"{row['recorded_median_us']:.2f} | {row['recorded_fast_us']:.2f} | "
            f"{row['fast_adds']:+.1%} | {row['pairs_add']:+.1%} |"
        )


if __name__ == "__main__":
    main()
