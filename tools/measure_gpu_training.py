"""Measure training steps on one GPU: ``python tools/measure_gpu_training.py [-n 8] [--json FILE]``.

The model is a GPT of 125 million parameters in float32; a step is that of 8 rows of 256 words on all ranks together.
DDP, FSDP2 and tensor parallel run on 8 ranks of one GPU (kernel mode, under a private MPS daemon), with Unisono and
with Gloo on the same CUDA tensors; a single rank trains on all rows alone. The time is the range of ten steps, after
three that warm up (Gloo: three, after one), on the slowest rank. It takes about 3 minutes; each contender is a job
with a time limit.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import gpu_jobs
import gpu_page
import measure_gpu
from gpu_training import CASES, SINGLE

CONTENDERS = ("unisono", SINGLE, "gloo")
STEPS = {"unisono": (3, 10), SINGLE: (3, 10), "gloo": (1, 3)}  # to warm up, and measured
LIMITS_S = {"unisono": 80.0, SINGLE: 40.0, "gloo": 110.0}


def main() -> int:
    """Measure, print the table, and write the file."""
    args = parse()
    result = measure_gpu.load(args.json)
    result.update(machine=gpu_jobs.machine(args.device), command="python " + " ".join(sys.argv))
    began = time.monotonic()
    problems: list[str] = []
    for contender in args.contenders.split(","):
        warmup, steps = STEPS[contender]
        settings: dict[str, Any] = {
            "device": args.device, "contender": contender, "warmup": warmup, "steps": steps, "rows": args.rows,
            "cases": args.cases.split(",") if contender != SINGLE else [SINGLE], "small": args.device == "cpu",
        }  # fmt: skip
        ranks = 1 if contender == SINGLE else args.size
        found, problem = gpu_jobs.run(
            "gpu_training:train", ranks, settings, mps=ranks > 1 and args.device == "cuda",
            limit_s=LIMITS_S[contender], timeout_s=60.0,
        )  # fmt: skip
        problems += [problem] if problem else []
        problems += [f"{row['contender']}, {row['case']}: {row['problem']}" for row in found if "problem" in row]
        kept = [row for row in result["rows"] if (row["contender"], row["case"]) not in _keys(found)]
        result["rows"] = kept + found
        measure_gpu.save(result, args.json)
        print(f"{contender}: {len(found)} rows after {time.monotonic() - began:.0f} s", flush=True)
    print(gpu_page.training_table(result))
    for problem in problems:
        print(f"problem: {problem}")
    return 1 if any(SINGLE in problem or "unisono" in problem for problem in problems) else 0


def _keys(rows: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(row["contender"], row["case"]) for row in rows}


def parse() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", dest="size", type=int, default=8, help="ranks (default 8)")
    parser.add_argument("--rows", type=int, default=8, help="rows of a step, on all ranks together (default 8)")
    parser.add_argument("--contenders", default=",".join(CONTENDERS))
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--json", type=Path, help="file of the results, which is updated")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    for name, known in (("contenders", CONTENDERS), ("cases", CASES)):
        for value in getattr(args, name).split(","):
            if value not in known:
                parser.error(f"--{name}: there is no {value!r}; expected some of {', '.join(known)}")
    return args


if __name__ == "__main__":
    sys.exit(main())
