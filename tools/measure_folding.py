#!/usr/bin/env python3
"""Measures simulations of many ranks: seconds of processor and wall-clock time, and the most memory in use.

    tools/measure_folding.py                       the five algorithms of all_reduce on 100,000 ranks
    tools/measure_folding.py --network dgx-h100
    tools/measure_folding.py --every -n 1024       every built-in algorithm

Each simulation runs in a process that does nothing else.
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


def measure(name: str, options: dict[str, object], size: int, nbytes: int, network: str) -> dict[str, object]:
    """Simulate one schedule in this process."""
    import unisono
    from unisono import networks

    chosen = networks.ideal(1e-6, 10e9, 1e-11) if network == "ideal" else networks.load(network)
    begin, cpu = time.perf_counter(), time.process_time()
    schedule = unisono.find(name).schedule(size, **options)
    predicted = unisono.simulate(schedule, nbytes, chosen, contention=False)
    return {
        "time_s": predicted.time_s, "messages": predicted.messages, "method": predicted.method,
        "wall_s": time.perf_counter() - begin, "cpu_s": time.process_time() - cpu,
        "memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }  # fmt: skip


def measure_apart(name: str, options: dict[str, object], args: argparse.Namespace) -> dict[str, object]:
    """Do the same in a new process."""
    case = json.dumps([name, options, args.size, args.bytes, args.network])
    done = subprocess.run([sys.executable, __file__, "--one", case], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr.strip().splitlines()[-1]}


def main() -> None:
    """Print one line for each simulation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--size", type=int, default=100_000, help="ranks (default: 100000)")
    parser.add_argument("--bytes", type=int, default=1 << 30, help="bytes of the vector (default: 1 GiB)")
    parser.add_argument("--network", default="ideal", help="a preset or a network file (default: ideal)")
    parser.add_argument("--every", action="store_true", help="every built-in algorithm, not only five")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        name, options, size, nbytes, network = json.loads(args.one)
        print(json.dumps(measure(name, options, size, nbytes, network)))
        return
    cases: dict[str, dict[str, object]] = dict(FIVE)
    if args.every:
        from unisono.algorithms import BUILT_IN

        cases = {str(each): {} for each in BUILT_IN if each.can_serve(args.size)}
    print(f"{args.size} ranks, {args.bytes} bytes, network {args.network}, messages do not share links")
    print(f"{'algorithm':<36}{'wall s':>8}{'cpu s':>8}{'GB':>6}{'messages':>13}{'predicted s':>13}  method")
    for name, options in cases.items():
        found = measure_apart(name, options, args)
        if "error" in found:
            print(f"{name:<36}  {found['error']}", flush=True)
            continue
        print(
            f"{name:<36}{found['wall_s']:>8.2f}{found['cpu_s']:>8.2f}{found['memory_gb']:>6.2f}"
            f"{found['messages']:>13.3g}{found['time_s']:>13.6g}  {found['method']}",
            flush=True,
        )


if __name__ == "__main__":
    main()
