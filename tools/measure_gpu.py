"""Measure collectives on CUDA tensors: ``python tools/measure_gpu.py [--json FILE] [--parts ...] [--ranks 2,4,8]``.

One command measures all numbers of docs/gpu.md but those of training: all_reduce of float32 in both modes and on each
number of ranks, the other collectives, Gloo on the same tensors, kernels that are written by hand, the time in which
a call returns to the host, and CUDA graphs. Kernel mode runs under a private MPS daemon, stream mode without one.

The ranks of a mode start once and measure everything, in a job with a time limit (about 4 minutes in all). The file
is written after every job. A file that exists is updated: what is measured again replaces what it holds. A time is
the range of several runs, each of many calls that are enqueued and then waited for once.

    python tools/measure_gpu.py --json docs/measurements/h200/collectives.json    # everything
    python tools/measure_gpu.py --modes kernel --ranks 8 --parts all_reduce,host  # a part
    python tools/measure_gpu.py --write-docs                                      # tables of docs/gpu.md, no GPU
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gpu_jobs
import gpu_page
from by_hand import NotByHand, compile_library
from gpu_jobs import KERNEL, STREAM
from gpu_measurements import MIB, PARTS

SIZES = [1024, 64 << 10, MIB, 16 * MIB, 64 * MIB, 256 * MIB]
FEW_SIZES = [MIB, 64 * MIB]
LIMITS_S = {KERNEL: 60.0, STREAM: 75.0}  # of a job
TOTAL_S = 300.0


def main() -> int:
    """Measure, print the tables, and write the file."""
    args = parse()
    if args.write_docs:
        gpu_page.write()
        return 0
    if args.device == "cpu":  # for tests of this tool
        args.sizes = args.sizes or "1024,65536"
    sizes = [int(size) for size in args.sizes.split(",")] if args.sizes else SIZES
    settings: dict[str, Any] = {
        "device": args.device, "parts": args.parts.split(","), "sizes": sizes,
        "few_sizes": [size for size in FEW_SIZES if size in sizes] or sizes[:1],
    }  # fmt: skip
    result = load(args.json)
    result["machine"] = gpu_jobs.machine(args.device)
    result["command"] = "python " + " ".join(sys.argv)
    began = time.monotonic()
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        if KERNEL in args.modes and "by_hand" in settings["parts"] and args.device == "cuda":
            try:
                settings["by_hand"] = str(compile_library(Path(folder), capability()))
            except (NotByHand, OSError, subprocess.SubprocessError) as error:
                problems.append(f"kernels written by hand: {error}")
                print(problems[-1], file=sys.stderr, flush=True)
        for mode in args.modes.split(","):
            for ranks in map(int, args.ranks.split(",")):
                left_s = args.total - (time.monotonic() - began)
                if left_s < 10:
                    problems.append(f"{mode}, {ranks} ranks: no time left")
                    continue
                found, problem = gpu_jobs.run(
                    "gpu_measurements:measure", ranks, {**settings, "mode": mode},
                    mps=mode == KERNEL and args.device == "cuda", limit_s=min(left_s, LIMITS_S[mode]),
                )  # fmt: skip
                problems += [problem] if problem else []
                merge(result, found)
                result["problems"] = problems
                save(result, args.json)
                print(f"{mode}, {ranks} ranks: {len(found)} rows after {time.monotonic() - began:.0f} s", flush=True)
    print(gpu_page.collectives_as_text(result))
    for problem in problems:
        print(f"problem: {problem}")
    wrong = [row for row in result["rows"] if row.get("wrong")]
    for row in wrong:
        print(f"WRONG RESULT: {row}")
    return 1 if problems or wrong else 0


def parse() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="file of the results, which is updated")
    parser.add_argument("--modes", default=f"{KERNEL},{STREAM}")
    parser.add_argument("--ranks", default="2,8,4")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--sizes", help="bytes of the vectors, separated by commas")
    parser.add_argument("--total", type=float, default=TOTAL_S, help=f"seconds in all (default {TOTAL_S:.0f})")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help=argparse.SUPPRESS)
    parser.add_argument("--write-docs", action="store_true", help="write the tables of docs/gpu.md from stored files")
    args = parser.parse_args()
    for part in args.parts.split(","):
        if part not in PARTS:
            parser.error(f"--parts: there is no part {part!r}; expected some of {', '.join(PARTS)}")
    for mode in args.modes.split(","):
        if mode not in LIMITS_S:
            parser.error(f"--modes: there is no mode {mode!r}; expected some of {', '.join(LIMITS_S)}")
    return args


def capability() -> tuple[int, int]:
    """Return the compute capability of the first GPU, without starting CUDA in this process."""
    command = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    first = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.split()[0]
    major, _, minor = first.partition(".")
    return int(major), int(minor)


def load(path: Path | None) -> dict[str, Any]:
    """Return the stored results, or none."""
    if path is not None and path.exists():
        stored: dict[str, Any] = json.loads(path.read_text())
        return stored
    return {"rows": []}


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what a row measures: a row with the same key replaces it."""
    names = ("mode", "ranks", "part", "contender", "collective", "bytes", "through", "name")
    return tuple(row.get(name) for name in names)


def merge(result: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """Put rows into the results, in the place of those that measure the same."""
    again = {(row["mode"], row["ranks"], row["name"]) for row in rows if row.get("part") == "seconds"}
    kept = [
        row
        for row in result["rows"]
        if row.get("part") != "problem" or (row["mode"], row["ranks"], row["name"]) not in again
    ]
    by_key = {key(row): row for row in kept}
    by_key.update({key(row): row for row in rows})
    result["rows"] = list(by_key.values())


def save(result: dict[str, Any], path: Path | None) -> None:
    """Write the results, if there is a file."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = ",\n".join("  " + json.dumps(row) for row in result["rows"])
    rest = json.dumps({name: value for name, value in result.items() if name != "rows"}, indent=1)
    path.write_text(f'{rest[:-2]},\n "rows": [\n{rows}\n ]\n}}\n')


if __name__ == "__main__":
    sys.exit(main())
