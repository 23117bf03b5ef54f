"""Measures all-reduces between hosts, in turns with Gloo in the same processes: time per call, and processor time.

    unisono run --hosts a:1,b:1 tools/measure_hosts.py --gloo 40000 --rate 1.25e9 --json hosts.json

Every rank runs this program. A line is the smallest and the median time of several blocks of calls, each the time of
the slowest rank. With ``--rate``, the bytes per second of a host's link, it also shows the ratio to the bound
2(h-1)/h x bytes / rate for h hosts. From 1 MiB on it shows the processor time of a rank, in seconds per GB of vector:
the median of the blocks, each the mean of all ranks. ``--gloo`` is a free port of the first host.
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

KIB, MIB = 1 << 10, 1 << 20
SIZES = (8, KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB)
LONGEST_BLOCK_S = 0.15
BLOCKS = 7


class Block(NamedTuple):
    """The microseconds of a call: elapsed on the slowest rank, and of processor time, the mean of all ranks."""

    elapsed_us: float
    processor_us: float


def measure_block(comm: unisono.Communicator, call: Callable[[], object], calls: int) -> Block:
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


def measure(
    comm: unisono.Communicator, contenders: dict[str, Callable[[np.ndarray], object]], nbytes: int
) -> dict[str, list[Block]]:
    """Return the times of each contender, measured in turns."""
    x = np.zeros(nbytes // 4, dtype=np.float32)
    calls = {}
    for name, call in contenders.items():
        call(x)
        once_us = measure_block(comm, lambda call=call: call(x), 2).elapsed_us
        calls[name] = int(min(max(LONGEST_BLOCK_S * 1e6 / once_us, 2), 2000))
    times: dict[str, list[Block]] = {name: [] for name in contenders}
    for _ in range(BLOCKS):
        for name, call in contenders.items():
            times[name].append(measure_block(comm, lambda call=call: call(x), calls[name]))
    return times


def gloo(port: int, comm: unisono.Communicator) -> Callable[[np.ndarray], object]:
    """Return the all-reduce of a Gloo process group of the same ranks."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    host = os.environ["UNISONO_RENDEZVOUS"].rpartition(":")[0]
    dist.init_process_group("gloo", init_method=f"tcp://{host}:{port}", rank=comm.rank, world_size=comm.size)
    return lambda x: dist.all_reduce(torch.from_numpy(x))


def main() -> None:
    """Measure, and print on rank 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gloo", type=int, metavar="PORT", help="measure Gloo, too")
    parser.add_argument("--algorithm", action="append", default=[], help="measure this algorithm, too")
    parser.add_argument("--rate", type=float, help="bytes per second of the link of a host")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="bytes of the longest vector")
    parser.add_argument("--json", type=Path, help="write the times there")
    args = parser.parse_args()
    with unisono.connect() as comm:
        contenders: dict[str, Callable[[np.ndarray], object]] = {"unisono": comm.all_reduce}
        for name in args.algorithm:
            contenders[f"unisono:{name}"] = lambda x, name=name: comm.all_reduce(x, algorithm=name)
        if args.gloo:
            contenders["gloo"] = gloo(args.gloo, comm)
        hosts = len(comm.hosts)
        results: dict[int, dict[str, list[float]]] = {}
        processor_s_per_gb: dict[int, dict[str, float]] = {}
        for nbytes in (size for size in SIZES if size <= args.most):
            blocks = measure(comm, contenders, nbytes)
            times = {name: [block.elapsed_us for block in each] for name, each in blocks.items()}
            results[nbytes] = times
            processor_s = {
                name: statistics.median(block.processor_us for block in each) / nbytes * 1e3
                for name, each in blocks.items()
            }
            if nbytes >= MIB:
                processor_s_per_gb[nbytes] = processor_s
            if comm.rank != 0:
                continue
            bound_us = 2 * (hosts - 1) / hosts * nbytes / args.rate * 1e6 if args.rate else None
            for name, each in times.items():
                ratio = f", {min(each) / bound_us:.2f} of the bound" if bound_us and nbytes >= 64 * KIB else ""
                processor = f", {processor_s[name]:.2f} processor s/GB" if nbytes >= MIB else ""
                print(
                    f"{nbytes:>9} B {name:12} {min(each):10.1f} {statistics.median(each):10.1f} us{ratio}{processor}",
                    flush=True,
                )
        if comm.rank == 0 and args.json:
            args.json.write_text(
                json.dumps(
                    {"hosts": hosts, "ranks": comm.size, "us": results, "processor_s_per_gb": processor_s_per_gb}
                )
            )


if __name__ == "__main__":
    main()
