"""Measures a collective between hosts, in turns with Gloo and MPI in the same processes.

    unisono run --hosts a:4,b:4 tools/measure_hosts.py --against gloo --rate 1.25e9 --json hosts.json
    mpirun --host a:4,b:4 --bind-to none python tools/measure_hosts.py --against gloo,mpi --rendezvous a:20000 \
        --token-file token --json hosts.json

Every rank runs this program. A line is the smallest and the median time of several blocks of calls, each the time of
the slowest rank. With ``--rate``, the bytes per second of a host's link, it also shows the ratio of an all-reduce to
the bound 2(h-1)/h x bytes / rate for h hosts. From 1 MiB on it shows the processor time of a rank, in seconds per GB
of vector: the median of the blocks, each the mean of all ranks. MPI can be measured if mpirun has started the ranks;
its version and settings are those of that mpirun.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import unisono
from unisono.bench.cases import format_bytes, parse_sizes
from unisono.bench.standalone.ranks.buffers import Buffers
from unisono.bench.standalone.ranks.library import Library
from unisono.bench.standalone.ranks.mpi import Mpi
from unisono.bench.standalone.ranks.ours import Unisono
from unisono.bench.standalone.ranks.torch_distributed import Gloo, StoreRendezvous
from unisono.comm.texts import broadcast_text

KIB, MIB = 1 << 10, 1 << 20
SIZES = "8,1KiB,64KiB,1MiB,16MiB,64MiB"
LONGEST_BLOCK_S = 0.15
BLOCKS = 7
Call = Callable[[], object]


class Block(NamedTuple):
    """The microseconds of a call: elapsed on the slowest rank, and of processor time, the mean of all ranks."""

    elapsed_us: float
    processor_us: float


def measure_block(comm: unisono.Communicator, call: Call, calls: int) -> Block:
    """Return the times of a call in one block."""
    comm.barrier()
    began, processor_began = time.perf_counter(), time.process_time()
    for _ in range(calls):
        call()
    elapsed = np.array([time.perf_counter() - began])
    processor = np.array([time.process_time() - processor_began])  # of all threads of the process
    comm.all_reduce(elapsed, op="max")
    comm.all_reduce(processor, op="avg")
    return Block(float(elapsed[0]) / calls * 1e6, float(processor[0]) / calls * 1e6)


def measure(comm: unisono.Communicator, contenders: dict[str, Call], block_s: float) -> dict[str, list[Block]]:
    """Return the times of each contender, measured in turns."""
    calls = {}
    for name, call in contenders.items():
        call()
        once_us = measure_block(comm, call, 2).elapsed_us
        calls[name] = int(min(max(block_s * 1e6 / once_us, 2), 2000))
    times: dict[str, list[Block]] = {name: [] for name in contenders}
    for _ in range(BLOCKS):
        for name, call in contenders.items():
            times[name].append(measure_block(comm, call, calls[name]))
    return times


def libraries(comm: unisono.Communicator, names: list[str]) -> dict[str, Library]:
    """Return Unisono and the libraries with these names, which have connected the same ranks."""
    found: dict[str, Library] = {"unisono": Unisono(comm)}
    if "gloo" in names:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "eth0")  # the interface of a test host
        host = broadcast_text(comm, comm.address or "127.0.0.1")
        share = lambda text: broadcast_text(comm, text)  # noqa: E731
        found["gloo"] = Gloo(StoreRendezvous(comm.rank, comm.size, host, share))
    if "mpi" in names:
        found["mpi"] = Mpi()
        if (found["mpi"].rank, found["mpi"].size) != (comm.rank, comm.size):
            raise SystemExit("mpirun has not started these ranks, so MPI cannot be measured")
    return found


def calls_of(
    comm: unisono.Communicator, contenders: dict[str, Library], algorithms: list[str], collective: str, nbytes: int
) -> dict[str, Call]:
    """Return a function of each contender that calls the collective on its arrays."""
    count = max(1, nbytes // 4)
    if collective in ("all_gather", "reduce_scatter", "all_to_all"):
        count = max(1, count // comm.size) * comm.size
    command = {
        "collective": collective, "op": "sum", "dtype": "float32", "count": count, "mpi_op": "SUM", "torch_op": "SUM",
    }  # fmt: skip
    buffers = Buffers(command, comm.rank, comm.size)
    calls = {name: library.call(buffers, command) for name, library in contenders.items()}
    for name in algorithms:
        calls[f"unisono:{name}"] = contenders["unisono"].call(buffers, {**command, "algorithm": name})
    return calls


def main() -> None:
    """Measure, and print on rank 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collective", default="all_reduce")
    parser.add_argument("--bytes", default=SIZES, help=f"sizes of the vector (default {SIZES})")
    parser.add_argument("--against", default="", help="measure these, too: gloo, mpi")
    parser.add_argument("--algorithm", action="append", default=[], help="measure this algorithm, too")
    parser.add_argument("--rate", type=float, help="bytes per second of the link of a host")
    parser.add_argument("--block", type=float, default=LONGEST_BLOCK_S, help="seconds of a block of calls")
    parser.add_argument("--rendezvous", help="HOST:PORT of rank 0, where the launcher does not state it")
    parser.add_argument("--token-file", type=Path, help="the file with the token of the job")
    parser.add_argument("--transport", help="of Unisono: tcp or ucx")
    parser.add_argument("--json", type=Path, help="write the times there")
    args = parser.parse_args()
    options = {"rendezvous": args.rendezvous, "token_file": args.token_file, "transport": args.transport}
    with unisono.connect(**options) as comm:
        contenders = libraries(comm, args.against.split(","))
        hosts = len(comm.hosts)
        results: dict[int, dict[str, list[float]]] = {}
        processor_s_per_gb: dict[int, dict[str, float]] = {}
        for nbytes in parse_sizes(args.bytes):
            calls = calls_of(comm, contenders, args.algorithm, args.collective, nbytes)
            blocks = measure(comm, calls, args.block)
            results[nbytes] = {name: [block.elapsed_us for block in each] for name, each in blocks.items()}
            processor_s = {
                name: statistics.median(block.processor_us for block in each) / nbytes * 1e3
                for name, each in blocks.items()
            }
            if nbytes >= MIB:
                processor_s_per_gb[nbytes] = processor_s
            if comm.rank != 0:
                continue
            is_bound_known = args.rate is not None and args.collective == "all_reduce" and nbytes >= 64 * KIB
            bound_us = 2 * (hosts - 1) / hosts * nbytes / args.rate * 1e6 if is_bound_known else None
            for name, each in results[nbytes].items():
                ratio = f", {min(each) / bound_us:.2f} of the bound" if bound_us else ""
                processor = f", {processor_s[name]:.2f} processor s/GB" if nbytes >= MIB else ""
                times = f"{min(each):10.1f} {statistics.median(each):10.1f} us"
                print(f"{format_bytes(nbytes):>8} {name:12} {times}{ratio}{processor}", flush=True)
        if comm.rank == 0 and args.json:
            versions = {name: library.version for name, library in contenders.items()}
            measured = {
                "hosts": hosts, "ranks": comm.size, "collective": args.collective, "versions": versions,
                "us": results, "processor_s_per_gb": processor_s_per_gb,
            }  # fmt: skip
            args.json.write_text(json.dumps(measured))


if __name__ == "__main__":
    main()
