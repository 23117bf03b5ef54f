"""Compares two installed versions of Unisono: the same measurements with each of them, in turns.

    python tools/compare_versions.py BEFORE/bin/python AFTER/bin/python bench --seconds 240 --json bench.json
    python tools/compare_versions.py BEFORE/bin/python AFTER/bin/python calls --seconds 240 --json calls.json

BEFORE and AFTER are virtual environments. ``bench`` runs `unisono bench` for five collectives; ``calls`` runs
tools/measure_calls.py, and `latency` of engine/tests where ``--latency BEFORE AFTER`` names the two programs. A turn
is one execution with each version; every other turn begins with the second version. The result holds the times of all
turns. tools/performance_page.py makes a table of it.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

Times = dict[str, float]  # microseconds of each case

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all")
BENCH_RANKS = 8
BENCH_TIME_BUDGET_S = "0.15"
CALLS_RANKS = (2, 4, 8)
LATENCY_CALLS = "200000"


def bench(python: str, nbytes: str) -> Times:
    """Return the times of `unisono bench`."""
    times = {}
    for collective in COLLECTIVES:
        arguments = [collective, "-n", str(BENCH_RANKS), "--bytes", nbytes, "--time-budget", BENCH_TIME_BUDGET_S]
        measured = json.loads(output_of([python, "-m", "unisono", "bench", *arguments, "--json"]))
        for case in measured["cases"]:
            (result,) = case["results"]
            times[f"{collective}, {BENCH_RANKS} ranks, {case['bytes']} B"] = result["time_us"]
    return times


def calls(python: str, latency: str | None) -> Times:
    """Return the times of single calls through Python and, if there is the program, from C++."""
    times = {}
    for size in CALLS_RANKS:
        with tempfile.NamedTemporaryFile() as file:
            script = Path(__file__).with_name("measure_calls.py")
            output_of([python, str(script), "-n", str(size), "--json", file.name])
            measured = json.loads(Path(file.name).read_text())
        times.update({f"{size} ranks, {name}": time_us for name, time_us in measured.items()})
    if latency is not None:
        median = re.search(r"median ([\d.]+)", output_of([latency, "2", LATENCY_CALLS]))
        assert median is not None
        times["2 ranks, 8 B from C++"] = float(median[1])
    return times


def output_of(command: list[str]) -> str:
    """Run a command and return its output."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=120).stdout


def compare(measure: Callable[[str], Times], versions: tuple[str, str], seconds: float) -> dict:
    """Measure both versions in turns until the time is over; return the times of each case in all turns."""
    cases: dict[str, tuple[list[float], list[float]]] = {}
    ends = time.monotonic() + seconds
    turns = 0
    while turns < 2 or time.monotonic() < ends:
        for version in (0, 1) if turns % 2 == 0 else (1, 0):
            for name, time_us in measure(versions[version]).items():
                cases.setdefault(name, ([], []))[version].append(round(time_us, 3))
        turns += 1
    return {"turns": turns, "compared": {name: {"before": old, "after": new} for name, (old, new) in cases.items()}}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="Python interpreter with the first version")
    parser.add_argument("after", help="Python interpreter with the second version")
    parser.add_argument("measurement", choices=("bench", "calls"))
    parser.add_argument("--latency", nargs=2, help="the programs `latency` of both versions")
    parser.add_argument("--bytes", default="8,1KiB,64KiB,1MiB,16MiB", help="sizes for bench (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=240, help="begin no turn after this time (default: 240)")
    parser.add_argument("--json", type=Path, required=True, help="file for the result")
    options = parser.parse_args()
    programs = dict(zip((options.before, options.after), options.latency or (None, None), strict=True))

    def measure(python: str) -> Times:
        """Make the chosen measurement with one version."""
        if options.measurement == "bench":
            return bench(python, options.bytes)
        return calls(python, programs[python])

    result = compare(measure, (options.before, options.after), options.seconds)
    options.json.write_text(json.dumps(result, indent=1) + "\n")
    for name, times in result["compared"].items():
        before, after = statistics.median(times["before"]), statistics.median(times["after"])
        print(f"{name:>40} {before:10.2f} {after:10.2f} µs {after / before:6.2f}")
