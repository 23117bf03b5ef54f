"""Stress ranks that share a GPU: ``python tools/gpu_stress.py [calls] [occupancy] [kills] [--short]``.

- ``calls``: 1,000 random calls on CUDA tensors, whose results equal those of the CPU engine bit for bit.
- ``occupancy``: 1,000 collectives while compute kernels fill the GPU.
- ``kills``: 200 times, a random rank is killed at a random time; the survivors must raise PeerLost with its rank
  within 2 s, their GPU must still work, the memory of the GPU must be freed, and no process may be left.

Each runs in kernel mode (under a private MPS daemon) and in stream mode (without), and each has a time limit; what
was not reached is reported. The seed is printed, and ``--seed`` repeats a run. ``--json FILE`` stores the counts,
from which the table of docs/gpu.md is made.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path
from typing import Any

import gpu_jobs
import gpu_kills
import gpu_page
import measure_gpu
from gpu_jobs import KERNEL, STREAM

TESTS = ("calls", "occupancy", "kills")
SHORT = {"calls": 100, "occupancy": 200, "kills": 6}
LONG = {"calls": 1000, "occupancy": 1000, "kills": 200}
LIMITS_S = {"calls": 100.0, "occupancy": 60.0, "kills": 240.0}
START_S = 40.0  # of a job, on top of its limit


def main() -> int:
    """Run the tests; return 1 if there was a failure."""
    args = parse()
    seed = random.SystemRandom().randrange(1 << 31) if args.seed is None else args.seed
    print(f"seed {seed}", flush=True)
    result = measure_gpu.load(args.json)
    result.update(machine=gpu_jobs.machine(args.device), command="python " + " ".join(sys.argv))
    failed = False
    for mode in args.modes.split(","):
        mps = mode == KERNEL and args.device == "cuda"
        for test in args.tests or TESTS:
            began = time.monotonic()
            count = args.count or (SHORT if args.short else LONG)[test]
            settings: dict[str, Any] = {
                "device": args.device, "mode": mode, "count": count, "seed": seed, "kernels": args.kernels,
                "limit_s": args.limit or LIMITS_S[test],
            }  # fmt: skip
            rows = kills(settings, args.ranks, mps) if test == "kills" else job(test, settings, args.ranks, mps)
            for row in rows:
                failed |= bool(row["failures"])
                print(
                    f"{row['name']}, {mode} mode, {row['ranks']} ranks: {row['done']} of {row['wanted']}, "
                    f"{row['failures']} failures; {row.get('note', '')} ({time.monotonic() - began:.0f} s)",
                    flush=True,
                )  # fmt: skip
            measure_gpu.merge(result, rows)
            measure_gpu.save(result, args.json)
    print(gpu_page.stress_table(result))
    return 1 if failed else 0


def parse() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", choices=[*TESTS, []], help="default: all")
    parser.add_argument("-n", dest="ranks", type=int, default=5, help="ranks (default 5)")
    parser.add_argument("--modes", default=f"{KERNEL},{STREAM}")
    parser.add_argument("--count", type=int, help="calls, collectives or kills, instead of those above")
    parser.add_argument("--short", action="store_true", help=f"{SHORT}")
    parser.add_argument("--limit", type=float, metavar="S", help=f"seconds of a test in a mode (default {LIMITS_S})")
    parser.add_argument("--kernels", type=int, default=12, help="pairs of type and reduction in random calls")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--json", type=Path, help="file of the counts, which is updated")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help=argparse.SUPPRESS)
    return parser.parse_args()


def job(test: str, settings: dict[str, Any], ranks: int, mps: bool) -> list[dict[str, Any]]:
    """Run a test whose ranks live until its end."""
    function = {"calls": "gpu_random_calls:compare", "occupancy": "gpu_occupancy:occupy"}[test]
    rows, problem = gpu_jobs.run(function, ranks, settings, mps=mps, limit_s=settings["limit_s"] + START_S)
    if problem and not rows:
        names = {"calls": "random calls", "occupancy": "full occupancy"}
        rows = [{
            "name": names[test], "mode": settings["mode"], "ranks": ranks, "done": 0, "wanted": settings["count"],
            "failures": 1, "seed": settings["seed"], "note": problem,
        }]  # fmt: skip
    return rows


def kills(settings: dict[str, Any], ranks: int, mps: bool) -> list[dict[str, Any]]:
    """Kill ranks; return the row with the counts."""
    row = {"name": "kills", "mode": settings["mode"], "ranks": ranks, "wanted": settings["count"]}
    times: list[float] = []
    problems: list[str] = []
    done = 0
    rounds = gpu_kills.campaign(
        settings["device"], ranks, settings["count"], settings["seed"], settings["limit_s"], mps
    )
    try:
        for result in rounds:
            done += result["number"] >= 0
            times += [result["after_s"]] if "after_s" in result else []
            if result["problem"]:
                problems.append(result["problem"])
                print(f"FAILED: kill {result['number']}: {result['problem']}", file=sys.stderr, flush=True)
    except Exception as error:  # the other tests run nevertheless
        problems.append(f"{type(error).__name__}: {error}")
        print(f"FAILED: {problems[-1]}", file=sys.stderr, flush=True)
    note = f"the last survivor raised PeerLost after at most {max(times):.2f} s" if times else "no kill"
    return [{**row, "done": done, "failures": len(problems), "seed": settings["seed"], "note": note}]


if __name__ == "__main__":
    sys.exit(main())
