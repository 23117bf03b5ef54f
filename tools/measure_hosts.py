"""Measures all-reduces between hosts, in turns with Gloo in the same processes: microseconds per call.

    unisono run --hosts a:1,b:1 tools/measure_hosts.py --gloo 40000 --rate 1.25e9 --json hosts.json

Every rank runs this program. A line is the smallest and the median time of several blocks of calls, each the time of
the slowest rank. With ``--rate``, the bytes per second of a host's link, it also shows the ratio to the bound
2(h-1)/h x bytes / rate for h hosts. ``--gloo`` is a free port of the first host.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import unisono

KIB, MIB = 1 << 10, 1 << 20
SIZES = (8, KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB)
LONGEST_BLOCK_S = 0.15
BLOCKS = 7


def block_us(comm: unisono.Communicator, call: Callable[[], object], calls: int) -> float:
    """Return the time of a call in one block, on the slowest rank."""
    comm.barrier()
    began = time.perf_counter()
    for _ in range(calls):
        call()
    mine = np.array([(time.perf_counter() - began) / calls * 1e6])
    comm.all_reduce(mine, op="max")
    return float(mine[0])


def measure(comm: unisono.Communicator, contenders: dict[str, Callable[[np.ndarray], object]], nbytes: int) -> Any:
    """Return the times of each contender, measured in turns."""
    x = np.zeros(nbytes // 4, dtype=np.float32)
    calls = {}
    for name, call in contenders.items():
        call(x)
        once_us = block_us(comm, lambda call=call: call(x), 2)
        calls[name] = int(min(max(LONGEST_BLOCK_S * 1e6 / once_us, 2), 2000))
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(BLOCKS):
        for name, call in contenders.items():
            times[name].append(block_us(comm, lambda call=call: call(x), calls[name]))
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
        results = {}
        for nbytes in (size for size in SIZES if size <= args.most):
            times = measure(comm, contenders, nbytes)
            results[nbytes] = times
            if comm.rank != 0:
                continue
            bound_us = 2 * (hosts - 1) / hosts * nbytes / args.rate * 1e6 if args.rate else None
            for name, each in times.items():
                ratio = f", {min(each) / bound_us:.2f} of the bound" if bound_us and nbytes >= 64 * KIB else ""
                print(
                    f"{nbytes:>9} B {name:12} {min(each):10.1f} {statistics.median(each):10.1f} us{ratio}", flush=True
                )
        if comm.rank == 0 and args.json:
            args.json.write_text(json.dumps({"hosts": hosts, "ranks": comm.size, "us": results}))


if __name__ == "__main__":
    main()
