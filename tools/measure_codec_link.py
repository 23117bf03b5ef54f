"""Measure the gain of each codec on a slow link: an all-reduce with each codec, and without one.

The link is a limit on the rate of each rank (`comm.limit_rate`). The table also shows the bytes that rank 0 sends,
and the largest error relative to the largest number of the result.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

import unisono

CODECS = (None, "fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8")


def measure(comm: Any, count: int, rate: float | None, repeats: int) -> list[dict[str, Any]]:
    """Return, for each codec, the time of the fastest call, the bytes sent, and the error."""
    inputs = [np.random.default_rng(rank).standard_normal(count, dtype=np.float32) for rank in range(comm.size)]
    exact = np.sum(inputs, axis=0, dtype=np.float64)
    own = inputs[comm.rank]
    x = own.copy()
    rows: list[dict[str, Any]] = [{"codec": codec or "float32", "seconds": float("inf")} for codec in CODECS]
    for lap in range(repeats + 1):
        for codec, row in zip(CODECS, rows, strict=True):  # in turns, so that all share the same disturbances
            np.copyto(x, own)
            comm.barrier()
            before, began = comm.sent_bytes, time.perf_counter()
            comm.all_reduce(x, codec=codec)
            seconds = time.perf_counter() - began
            if lap == 0:  # this call also made the plan and allocated memory
                row["sent_bytes"] = comm.sent_bytes - before
                row["error"] = float(np.abs(x - exact).max() / np.abs(exact).max())
            else:
                row["seconds"] = min(row["seconds"], seconds)
        comm.limit_rate(rate)
    return rows


def measured(size: int, count: int, rate: float | None, repeats: int) -> list[dict[str, Any]]:
    """Return a row for each codec on ``size`` ranks; the time of a call is that of the slowest rank."""
    ranks = unisono.spawn(measure, size, count, rate, repeats)
    rows = []
    for of_each in zip(*ranks, strict=True):
        seconds = max(row["seconds"] for row in of_each)
        speedup = rows[0]["seconds"] / seconds if rows else 1.0
        rows.append({"ranks": size, **of_each[0], "seconds": seconds, "speedup": speedup})
    return rows


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", dest="sizes", type=int, nargs="+", default=[2, 4], help="ranks (default 2 4)")
    parser.add_argument("--mib", type=float, default=64, help="length of the array (default 64 MiB)")
    parser.add_argument("--rate", type=float, default=200e6, help="bytes/s of each rank; 0: no limit (default 200e6)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    count = int(args.mib * 2**20) // 4
    rows = [row for size in args.sizes for row in measured(size, count, args.rate or None, args.repeats)]
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    rate = f"{args.rate / 1e6:g} MB/s for each rank" if args.rate else "no limit"
    print(f"all_reduce of {args.mib:g} MiB of float32, {rate}, the fastest of {args.repeats} calls\n")
    print("| ranks | codec | ms | × float32 | MB sent by rank 0 | of float32 | largest error |")
    print("|--:|---|--:|--:|--:|--:|--:|")
    for row in rows:
        plain = next(other for other in rows if other["ranks"] == row["ranks"])
        print(
            f"| {row['ranks']} | {row['codec']} | {row['seconds'] * 1e3:.0f} | {row['speedup']:.2f} | "
            f"{row['sent_bytes'] / 1e6:.1f} | {row['sent_bytes'] / plain['sent_bytes']:.3f} | {row['error']:.2e} |"
        )


if __name__ == "__main__":
    main()
