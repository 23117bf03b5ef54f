"""Measures the speed of the simulator: messages per second, with and without shared links.

    python tools/measure_simulator.py [--runs N] [--only TEXT] [--json FILE]

The programs of all ranks are compiled once; only the event loop is timed, in seconds of the processor, because other
processes change these less than elapsed time. Speeds are ranges over the runs.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import unisono
from unisono import networks
from unisono.simulator import events, simulation
from unisono.simulator.actions import room_of
from unisono.simulator.costs import costs_of

KIB, MIB = 1 << 10, 1 << 20


class Case(NamedTuple):
    """A program, the ranks and the network, the bytes of the vector and the passes (None: as the engine cuts it)."""

    algorithm: str
    size: int
    network: str
    nbytes: int
    segments: int | None = None


CASES = [
    Case("all_reduce/ring", 256, "one-switch", 64 * KIB),
    Case("all_reduce/ring", 256, "ideal", 64 * KIB),
    Case("all_to_all/pairwise", 256, "one-switch", 64 * KIB),
    Case("all_to_all/naive", 256, "one-switch", 64 * KIB),
    Case("all_reduce/ring", 256, "dgx-h100", 64 * KIB),
    Case("all_to_all/pairwise", 256, "dgx-h100", 64 * KIB),
    Case("all_to_all/pairwise", 256, "fugaku", 64 * KIB),
    Case("all_to_all/pairwise", 256, "leonardo", 64 * MIB),
    # More than the cache holds.
    Case("all_reduce/ring", 1024, "dgx-h100", 16 * MIB, 1),
    Case("all_reduce/ring", 1024, "fugaku", 16 * MIB),
    Case("all_to_all/naive", 1024, "dgx-h100", 16 * MIB, 1),
    # Several passes, on up to four tracks.
    Case("all_reduce/ring", 512, "one-switch", 1 * MIB, 3),
    Case("all_reduce/ring", 512, "ideal", 16 * MIB, 4),
    Case("all_reduce/ring", 512, "fugaku", 16 * MIB, 4),
    Case("all_to_all/pairwise", 512, "dgx-h100", 64 * MIB, 2),
    Case("all_to_all/pairwise", 512, "leonardo", 64 * MIB, 8),
    Case("all_reduce/rabenseifner", 1024, "marenostrum5", 64 * MIB, 8),
    # Much contention.
    Case("all_to_all/pairwise", 512, "dgx-h100", 64 * MIB, 1),
    Case("all_to_all/pairwise", 512, "leonardo", 64 * MIB),
    Case("all_to_all/pairwise", 512, "fugaku", 64 * KIB),
    Case("all_to_all/pairwise", 512, "fugaku", 16 * MIB),
    Case("all_to_all/naive", 512, "fugaku", 16 * MIB),
]


def measure(case: Case, runs: int) -> dict[str, Any]:
    """Return one row: messages per second without and with shared links, in each run."""
    algorithm, network = unisono.find(case.algorithm), networks.load(case.network)
    schedule = algorithm.schedule(case.size, 0 if algorithm.collective.rooted else None)
    programs = simulation.rank_by_rank(schedule, network)
    cut = simulation.cut_for(
        schedule, algorithm.collective, programs.most_sent, case.nbytes, network, None, "float32", case.segments
    )
    costs, room = costs_of(programs, network, cut), room_of(programs, simulation.DEPTH)
    messages = len(programs.receives) * costs.passes

    def rates(bandwidth: object) -> list[float]:
        found = []
        for _ in range(runs):
            start = time.process_time()
            events.run(programs, costs, room, bandwidth, record=False)
            found.append(messages / (time.process_time() - start))
        return sorted(found)

    alone, shared = rates(None), rates(network.links(case.size).bandwidth)
    return {
        "algorithm": case.algorithm, "size": case.size, "network": case.network, "bytes": case.nbytes,
        "passes": costs.passes, "messages": messages, "messages_per_s": alone, "messages_per_s_with_sharing": shared,
        "slowdown": [low / high for low, high in zip(alone, shared, strict=True)],
    }  # fmt: skip


def cells(row: dict[str, Any]) -> list[str]:
    """Return the cells of a row; those of several runs are ranges."""

    def span(values: list[float], digits: int, unit: float = 1.0) -> str:
        return f"{min(values) / unit:.{digits}f}-{max(values) / unit:.{digits}f}"

    return [
        row["algorithm"], f"{row['size']:,}", row["network"], f"{row['bytes']:,}", str(row["passes"]),
        f"{row['messages']:,}", span(row["messages_per_s"], 1, 1e6) + " M/s",
        span(row["messages_per_s_with_sharing"], 2, 1e6) + " M/s", span(row["slowdown"], 1) + "×",
    ]  # fmt: skip


def main() -> None:
    """Print the table, in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="of each case (default: 3)")
    parser.add_argument("--only", default="", help="measure only the cases whose algorithm or network has this in it")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    args = parser.parse_args()
    rows = []
    print("| algorithm | ranks | network | bytes | passes | messages | without sharing | with sharing | slowdown |")
    print("|---|---|---|---|---|---|---|---|---|")
    for case in CASES:
        if args.only not in f"{case.algorithm} {case.network}":
            continue
        row = measure(case, args.runs)
        rows.append(row)
        print("| " + " | ".join(cells(row)) + " |", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
