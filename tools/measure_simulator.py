"""Measures the speed of the simulator: messages per second, with and without shared links.

    python tools/measure_simulator.py [--json FILE]

The programs are compiled once; only the event loop is timed. Each row is the best of three trials.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import unisono
from unisono import networks
from unisono.simulator import events, simulation
from unisono.simulator.actions import room_of
from unisono.simulator.costs import costs_of

CASES = [
    ("all_reduce/ring", 512, "one-switch"),
    ("all_reduce/ring", 512, "ideal"),
    ("all_to_all/pairwise", 512, "one-switch"),
    ("all_to_all/naive", 512, "one-switch"),
    ("all_reduce/ring", 512, "dgx-h100"),
    ("all_to_all/pairwise", 512, "dgx-h100"),
    ("all_to_all/pairwise", 512, "fugaku"),
]
TRIALS = 3


def measure(name: str, size: int, network_name: str, nbytes: int) -> dict[str, object]:
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
    parser.add_argument("--bytes", type=int, default=1 << 20)
    args = parser.parse_args()
    rows = []
    print("algorithm                 ranks  network      messages   without sharing      with sharing  slowdown")
    for case in CASES:
        row = measure(*case, nbytes=args.bytes)
        rows.append(row)
        print(
            f"{row['algorithm']:<24} {row['size']:>6}  {row['network']:<12} {row['messages']:>8}"
            f"   {row['messages_per_s'] / 1e6:>8.2f} M/s    {row['messages_per_s_with_sharing'] / 1e6:>10.2f} M/s"
            f"  {row['slowdown']:>7.1f}x",
            flush=True,
        )
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
