"""Measure the cost of torch process groups, ours and Gloo's: time, memory, descriptors and threads of each rank.

Each measurement runs in new processes. Groups are created by ``dist.new_group``, then each is used once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import page_parts

BACKENDS = ("gloo", "unisono")
KINDS = ("all ranks", "pairs")
PAGE = Path(__file__).parent.parent / "docs" / "pytorch.md"
FOUND = PAGE.parent / "measurements" / "epyc-2-cores" / "groups-4.json"
COLUMNS = {  # the title of each column: the measured quantity, the size of its unit, and its decimals
    "making them, s": ("make_s", 1, 2), "first use, s": ("use_s", 1, 2), "destroying, s": ("destroy_s", 1, 2),
    "RSS, MB": ("used_rss_kb", 1024, 1), "PSS, MB": ("used_pss_kb", 1024, 1),
    "descriptors": ("used_descriptors", 1, 0), "threads": ("used_threads", 1, 0),
}  # fmt: skip


def table(results: list[dict[str, Any]]) -> str:
    """Return the table of docs/pytorch.md."""
    lines = [f"| {results[0]['groups']} groups of | backend | {' | '.join(COLUMNS)} |", "|---|---" + "|--:" * 7 + "|"]
    for result in results:
        cells = [f"{result[name] / unit:.{decimals}f}" for name, unit, decimals in COLUMNS.values()]
        lines.append(f"| {result['of']} | {result['backend']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """Return docs/pytorch.md with a current table."""
    parts = {"groups": lambda: table(json.loads(FOUND.read_text())["results"])}
    return page_parts.fill(text, lambda name: parts[name]())


def state() -> dict[str, float]:
    """Return the memory in kB, the descriptors and the threads of this process."""
    rollup = dict(
        line.split()[:2] for line in Path("/proc/self/smaps_rollup").read_text().splitlines()[1:] if "kB" in line
    )
    return {
        "rss_kb": int(rollup["Rss:"]),
        "pss_kb": int(rollup["Pss:"]),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
    }


def measure(rank: int, size: int, backend: str, kind: str, groups: int, path: str) -> dict[str, float]:
    """Create groups and use them; return the cost of each step on this rank."""
    store = dist.FileStore(path, size)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timedelta(seconds=60))
    x = torch.ones(8)
    for _ in range(3):
        dist.all_reduce(x)
    dist.barrier()
    before, began = state(), time.perf_counter()
    made = []
    for number in range(groups):
        ranks = list(range(size)) if kind == "all ranks" else [number % size, (number + 1) % size]
        group = dist.new_group(ranks)
        if rank in ranks:
            made.append(group)
    dist.barrier()
    found = {"make_s": time.perf_counter() - began}
    found.update({f"made_{name}": value - before[name] for name, value in state().items()})
    began = time.perf_counter()
    for group in made:
        dist.all_reduce(x, group=group)
    dist.barrier()
    found["use_s"] = time.perf_counter() - began
    found.update({f"used_{name}": value - before[name] for name, value in state().items()})
    began = time.perf_counter()
    dist.destroy_process_group()
    found["destroy_s"] = time.perf_counter() - began
    return found


def in_processes(size: int, arguments: tuple[Any, ...]) -> list[Any]:
    """Measure in ``size`` forked processes; return their results."""
    readers = []
    for rank in range(size):
        reader, writer = os.pipe()
        if os.fork() == 0:
            status = 1
            try:
                os.write(writer, json.dumps(measure(rank, *arguments)).encode())
                status = 0
            finally:
                os._exit(status)
        os.close(writer)
        readers.append(reader)
    texts = []
    for reader in readers:
        with open(reader, "rb") as pipe:
            texts.append(pipe.read())
    for _ in range(size):
        os.wait()
    return [json.loads(text) for text in texts]


def main() -> None:
    """Measure both backends in turns, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--page", action="store_true", help="write the table of docs/pytorch.md; measure nothing")
    args = parser.parse_args()
    if args.page:
        PAGE.write_text(page(PAGE.read_text()))
        return
    import unisono.torch_backend.process_group  # noqa: F401 (before the fork, like torch)

    results: list[dict[str, Any]] = []
    for kind in KINDS:
        samples: dict[str, list[dict[str, float]]] = {backend: [] for backend in BACKENDS}
        for _ in range(args.repeats):
            for backend in BACKENDS:  # in turns, so that both share the same disturbances
                with tempfile.TemporaryDirectory() as folder:
                    path = str(Path(folder) / "store")
                    ranks = in_processes(args.ranks, (args.ranks, backend, kind, args.groups, path))
                samples[backend].append({name: max(rank[name] for rank in ranks) for name in ranks[0]})
        for backend in BACKENDS:
            medians = {
                name: statistics.median(sample[name] for sample in samples[backend]) for name in samples[backend][0]
            }
            results.append({"groups": args.groups, "ranks": args.ranks, "of": kind, "backend": backend, **medians})
            print(json.dumps(results[-1]), flush=True)
    if args.json is not None:
        args.json.write_text(json.dumps({"torch": torch.__version__, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
