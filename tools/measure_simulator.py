"""Measures the speed of the simulator: messages per second, with and without shared links.

    python tools/measure_simulator.py [--json FILE]

The programs of all ranks are compiled once; only the event loop is timed, in seconds of the processor, which other
processes do not change much. Each row is the best of three trials.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import unisono
from unisono import networks
from unisono.simulator import events, simulation
from unisono.simulator.actions import room_of
from unisono.simulator.costs import costs_of

CASES = [
    ("all_reduce/ring", 256, "one-switch", 64 << 10),
    ("all_reduce/ring", 256, "one-switch", 16 << 20),
    ("all_reduce/ring", 256, "ideal", 64 << 10),
    ("all_to_all/pairwise", 256, "one-switch", 64 << 10),
    ("all_to_all/naive", 256, "one-switch", 64 << 10),
    ("all_reduce/ring", 256, "dgx-h100", 64 << 10),
    ("all_to_all/pairwise", 256, "dgx-h100", 64 << 10),
    ("all_to_all/pairwise", 256, "fugaku", 64 << 10),
]
TRIALS = 3


def measure(name: str, size: int, network_name: str, nbytes: int) -> dict[str, Any]:
    """Return one row: messages per second without and with shared links."""
    algorithm, network = unisono.find(name), networks.load(network_name)
    schedule = algorithm.schedule(size, 0 if algorithm.collective.rooted else None)
    programs = simulation.rank_by_rank(schedule, network)
    cut = simulation.cut_for(schedule, algorithm.collective, programs, nbytes, network, None, "float32", None)
    costs, room = costs_of(programs, network, cut), room_of(programs, simulation.DEPTH)
    messages = len(programs.receives) * costs.passes

    def rate(bandwidth: object) -> float:
        best = float("inf")
        for _ in range(TRIALS):
            start = time.process_time()
            events.run(programs, costs, room, bandwidth, record=False)
            best = min(best, time.process_time() - start)
        return messages / best

    alone, shared = rate(None), rate(network.links(size).bandwidth)
    return {
        "algorithm": name, "size": size, "network": network_name, "bytes": nbytes, "messages": messages,
        "messages_per_s": alone, "messages_per_s_with_sharing": shared, "slowdown": alone / shared,
    }  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    args = parser.parse_args()
    rows = []
    print("algorithm                ranks  network        bytes  messages  without sharing  with sharing  slowdown")
    for case in CASES:
        row = measure(*case)
        rows.append(row)
        print(
            f"{row['algorithm']:<24} {row['size']:>5}  {row['network']:<10} {row['bytes']:>9} {row['messages']:>9}"
            f"  {row['messages_per_s'] / 1e6:>11.2f} M/s  {row['messages_per_s_with_sharing'] / 1e6:>8.2f} M/s"
            f"  {row['slowdown']:>7.1f}x",
            flush=True,
        )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
