#!/usr/bin/env python3
"""Measures simulations of many ranks: seconds of processor and wall-clock time, and the most memory in use.

    tools/measure_folding.py                       the five algorithms of all_reduce on 100,000 ranks
    tools/measure_folding.py --network dgx-h100
    tools/measure_folding.py --every -n 1024 --no-contention    every built-in algorithm

Each simulation runs in a process that does nothing else. With ``--runs``, seconds are ranges over several processes.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

FIVE = {
    "ring": {},
    "recursive_doubling": {},
    "rabenseifner": {},
    "double_tree": {},
    "hierarchical": {"node": 8, "outer": "hierarchical"},  # three levels
}


def measure(
    name: str, options: dict[str, object], size: int, nbytes: int, network: str, contention: bool | None
) -> dict[str, object]:
    """Simulate one schedule in this process."""
    import unisono
    from unisono import networks

    chosen = networks.ideal(1e-6, 10e9, 1e-11) if network == "ideal" else networks.load(network)
    begin, cpu = time.perf_counter(), time.process_time()
    schedule = unisono.find(name).schedule(size, **options)
    predicted = unisono.simulate(schedule, nbytes, chosen, contention=contention)
    return {
        "time_s": predicted.time_s, "messages": predicted.messages, "method": predicted.method,
        "links": "shared" if predicted.contention else "ignored" if predicted.contention_ignored else "alone",
        "wall_s": time.perf_counter() - begin, "cpu_s": time.process_time() - cpu,
        "memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }  # fmt: skip


def measure_apart(name: str, options: dict[str, object], args: argparse.Namespace) -> list[dict[str, object]]:
    """Do the same in new processes, one for each run."""
    contention = False if args.no_contention else None
    case = json.dumps([name, options, args.size, args.bytes, args.network, contention])
    command = [sys.executable, __file__, "--one", case]
    done = [subprocess.run(command, capture_output=True, text=True) for _ in range(args.runs)]
    return [
        json.loads(each.stdout) if each.returncode == 0 else {"error": each.stderr.strip().splitlines()[-1]}
        for each in done
    ]


def spread(found: list[dict[str, object]], key: str) -> str:
    """Return a measured value, or its range over the runs."""
    texts = [f"{least:.2f}" for least in sorted(float(str(each[key])) for each in found)]
    return texts[0] if texts[0] == texts[-1] else f"{texts[0]}-{texts[-1]}"


def main() -> None:
    """Print one line for each simulation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--size", type=int, default=100_000, help="ranks (default: 100000)")
    parser.add_argument("--bytes", type=int, default=1 << 30, help="bytes of the vector (default: 1 GiB)")
    parser.add_argument("--network", default="ideal", help="a preset or a network file (default: ideal)")
    parser.add_argument("--every", action="store_true", help="every built-in algorithm, not only five")
    parser.add_argument("--no-contention", action="store_true", help="let messages use links at full speed")
    parser.add_argument("--runs", type=int, default=1, help="processes for each simulation (default: 1)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(*json.loads(args.one))))
        return
    cases: dict[str, dict[str, object]] = dict(FIVE)
    if args.every:
        from unisono.algorithms import BUILT_IN

        cases = {str(each): {} for each in BUILT_IN if each.can_serve(args.size)}
    print(f"{args.size} ranks, {args.bytes} bytes, network {args.network}")
    print(
        f"{'algorithm':<30}{'wall s':>12}{'cpu s':>11}{'GB':>10}{'messages':>10}{'predicted s':>12}  links    method"
    )
    for name, options in cases.items():
        runs = measure_apart(name, options, args)
        if errors := [each["error"] for each in runs if "error" in each]:
            print(f"{name:<30}  {errors[0]}", flush=True)
            continue
        found = runs[0]
        print(
            f"{name:<30}{spread(runs, 'wall_s'):>12}{spread(runs, 'cpu_s'):>11}{spread(runs, 'memory_gb'):>10}"
            f"{found['messages']:>10.3g}{found['time_s']:>12.6g}  {found['links']:<8} {found['method']}",
            flush=True,
        )


if __name__ == "__main__":
    main()
