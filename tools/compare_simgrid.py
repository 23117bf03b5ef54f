"""Compares simulated times with those of SimGrid's SMPI, an independent simulator (Debian: libsimgrid-dev).

    python tools/compare_simgrid.py [--json FILE]

Both simulate the same schedules on the same networks: each rank on its own NIC, and four ranks that share the NIC of
their host. SMPI gets the steps as their author wrote them, and the links and routes of the network; it executes them
with MPI_Isend and MPI_Recv. Its network model is set to plain latencies and max-min fair bandwidth.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import unisono
from unisono.networks import Endpoint, Near, Network, Nics
from unisono.schedule import Schedule
from unisono.schedule.ops import SEND, count

SIZE = 16
ALPHA, BANDWIDTH = 1e-5, 1e9
# As many messages at once as a rank wants to send: SMPI has no ports.
ALONE = Network("own NIC", nics=Nics(latency_s=ALPHA, bandwidth=BANDWIDTH), endpoint=Endpoint(ports=1024))
SHARED = replace(
    ALONE, name="shared NIC", ranks_per_host=4, near=Near("switch", latency_s=2e-6, bandwidth=4 * BANDWIDTH)
)
NAMES = (
    "all_reduce/ring", "all_reduce/rabenseifner", "all_gather/bruck", "broadcast/scatter_all_gather",
    "all_to_all/pairwise",
)  # fmt: skip
BYTES = (16 * 64, 64 << 10, 16 << 20)
SETTINGS = (
    "network/model:CM02", "network/latency-factor:1", "network/bandwidth-factor:1", "network/TCP-gamma:0",
    "network/crosstraffic:no", "network/weight-S:0", "smpi/simulate-computation:no", "smpi/wtime:0",
    "smpi/send-is-detached-thresh:1000000000", "smpi/async-small-thresh:1000000000", "surf/precision:1e-12",
)  # fmt: skip
PROGRAM = Path(__file__).parent / "simgrid_programs" / "execute_schedule.c"


def platform(network: Network, size: int) -> str:
    """Return the platform file: a host for each rank, the links of the network, and its routes."""
    table = network.links(size)
    lines = [f'  <host id="rank{rank}" speed="1Gf"/>' for rank in range(size)]
    for link in range(len(table)):
        rate, latency = table.bandwidth[link], table.latency_s[link]
        lines.append(f'  <link id="link{link}" bandwidth="{rate:.12g}Bps" latency="{latency:.12g}s"/>')
    for src in range(size):
        for dst in range(size):
            if src != dst:
                route = network.routes(size, [src], [dst])[0]
                links = "".join(f'<link_ctn id="link{link}"/>' for link in route if link >= 0)
                lines.append(f'  <route src="rank{src}" dst="rank{dst}" symmetrical="NO">{links}</route>')
    return "\n".join(
        [
            '<?xml version="1.0"?>', '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
            '<platform version="4.1"><zone id="zone" routing="Full">', *lines, "</zone></platform>", "",
        ]
    )  # fmt: skip


def steps_of(schedule: Schedule, nbytes: int) -> str:
    """Return the ops of each rank on a line."""
    unit = nbytes // schedule.chunks
    lines = []
    for rank in range(schedule.size):
        ops = [op for step in schedule.program(rank) for op in step if not op.is_local]
        lines.append(" ".join(f"{'s' if op.kind == SEND else 'r'}{op.other} {count(op.chunks) * unit}" for op in ops))
    return "\n".join(lines) + "\n"


def simulate_with_smpi(schedule: Schedule, nbytes: int, network: Network, folder: Path) -> float:
    """Return the time that SMPI computes."""
    (folder / "platform.xml").write_text(platform(network, schedule.size))
    (folder / "hosts").write_text("".join(f"rank{rank}\n" for rank in range(schedule.size)))
    (folder / "steps").write_text(steps_of(schedule, nbytes))
    settings = [f"--cfg={setting}" for setting in SETTINGS]
    command = ["smpirun", "-np", str(schedule.size), "-platform", "platform.xml", "-hostfile", "hosts", *settings]
    done = subprocess.run([*command, "./program", "steps"], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return float(done.stdout.split()[-1])


def points() -> Iterator[tuple[str, int, Network]]:
    """Yield the points of the comparison."""
    for network in (ALONE, SHARED):
        for name in NAMES:
            for nbytes in BYTES:
                yield name, nbytes, network


def main() -> None:
    """Print the table, and the largest difference."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    args = parser.parse_args()
    if shutil.which("smpicc") is None:
        sys.exit("smpicc was not found; install SimGrid (Debian: libsimgrid-dev)")
    rows = []
    print("network     algorithm                          bytes       unisono      simgrid  difference")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["smpicc", "-O2", str(PROGRAM), "-o", str(folder / "program")], check=True)
        for label, nbytes, network in points():
            algorithm = unisono.find(label)
            schedule = algorithm.schedule(SIZE, 0 if algorithm.collective.rooted else None)
            ours = unisono.simulate(
                schedule, nbytes, network, segments=1, contention=True, depth=None, fold=False
            ).time_s
            theirs = simulate_with_smpi(schedule, nbytes, network, folder)
            difference = ours / theirs - 1
            rows.append({"network": network.name, "algorithm": label, "bytes": nbytes, "unisono_s": ours,
                         "simgrid_s": theirs, "difference": difference})  # fmt: skip
            print(
                f"{network.name:<10}  {label:<28} {nbytes:>11}  {ours * 1e6:>9.2f} us {theirs * 1e6:>9.2f} us"
                f"  {difference:>+9.3%}",
                flush=True,
            )
    worst = max(abs(row["difference"]) for row in rows)
    median = statistics.median(abs(row["difference"]) for row in rows)
    print(f"{len(rows)} points; largest difference {worst:.3%}, median {median:.3%}")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
