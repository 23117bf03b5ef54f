"""Measure the gain of each codec on a slow link: an all-reduce with each codec, and without one.

The link is a limit on the rate of each rank (`comm.limit_rate`), or the network between hosts if this program runs on
the ranks of a job: `unisono run --hosts a,b tools/measure_codec_link.py`. Then there are lines for codecs that are
used where they pay (auto:bf16), with the rate that `connect(link_rate="measure")` has found. The table also shows
the bytes that rank 0 sends, and the largest error relative to the largest number of the result.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

import unisono
from unisono.bootstrap.environment import identity_in_job
from unisono.comm.texts import all_gather_text

CODECS = (None, "fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "int8")


def measure(
    comm: Any, count: int, rate: float | None, repeats: int, codecs: tuple[str | None, ...] = CODECS
) -> list[dict[str, Any]]:
    """Return, for each codec, the time of the fastest call, the bytes sent, and the error."""
    inputs = [np.random.default_rng(rank).standard_normal(count, dtype=np.float32) for rank in range(comm.size)]
    exact = np.sum(inputs, axis=0, dtype=np.float64)
    own = inputs[comm.rank]
    x = own.copy()
    rows: list[dict[str, Any]] = [{"codec": codec or "float32", "seconds": float("inf")} for codec in codecs]
    for lap in range(repeats + 1):
        for codec, row in zip(codecs, rows, strict=True):  # in turns, so that all share the same disturbances
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
    return joined(unisono.spawn(measure, size, count, rate, repeats))


def joined(ranks: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return one row for each codec from the rows of all ranks."""
    size = len(ranks)
    rows: list[dict[str, Any]] = []
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
    if identity_in_job().size > 1:
        with unisono.connect(link_rate="measure") as comm:
            own = measure(comm, count, None, args.repeats, (*CODECS, "auto:bf16", "auto:fp8_e4m3"))
            ranks = [json.loads(text) for text in all_gather_text(comm, json.dumps(own))]
            if comm.rank == 0:
                print(comm.explain("all_reduce", count * 4, codec="auto:bf16"))
                show(args, joined(ranks), f"{(comm.link_rate or 0) * 8e-9:.3g} Gbit/s between hosts")
        return
    rows = [row for size in args.sizes for row in measured(size, count, args.rate or None, args.repeats)]
    show(args, rows, f"{args.rate / 1e6:g} MB/s for each rank" if args.rate else "no limit")


def show(args: argparse.Namespace, rows: list[dict[str, Any]], rate: str) -> None:
    """Print the rows."""
    if args.json:
        print(json.dumps(rows, indent=2))
        return
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
