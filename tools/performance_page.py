"""Write the tables of docs/performance*.md and docs/several_machines.md from docs/measurements/<machine>/.

python tools/performance_page.py                        regenerate the tables
python tools/performance_page.py MACHINE FILE.json...   add results of `unisono bench --json` first

A file may also hold a list of such results, of one command that was run several times, or a result of
tools/compare_versions.py.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
from pathlib import Path

import page_parts

ROOT = Path(__file__).parent.parent
MEASUREMENTS = ROOT / "docs" / "measurements"
PAGES = [*sorted((ROOT / "docs").glob("performance*.md")), ROOT / "docs" / "several_machines.md"]


def condensed(measured: dict | list) -> dict:
    """Return the numbers of a measurement that the tables show."""
    if isinstance(measured, list):
        return {"runs": [condensed(run) for run in measured]}
    # Of tools/measure_training.py and tools/measure_parallel.py, and of tools/compare_versions.py.
    if "seconds" in measured or "compared" in measured:
        return measured
    return {
        "ranks": measured["ranks"],
        "contenders": [{"name": c["name"], "version": c["version"]} for c in measured["contenders"]],
        "cases": [
            {
                "bytes": case["bytes"],
                "times_us": {
                    found["contender"]: round(found["time_us"], 3) for found in case["results"] if found["time_us"]
                },
                "wrong": sum(found["wrong"] or 0 for found in case["results"]),
            }
            for case in measured["cases"]
        ],
    }


def with_unit(count: int) -> str:
    """Return a number of bytes as text."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count} B"


def microseconds(value: float) -> str:
    """Return a time as text, with three digits."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}".replace(",", " ")


def factor(ratio: float) -> str:
    """Return a ratio as text."""
    return f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.1f}×"


def torch_table(data: dict) -> str:
    """Return the table of calls through torch.distributed."""
    lines = ["| bytes | on Unisono µs | on Gloo µs | ratio | `comm` µs |", "|--:|--:|--:|--:|--:|"]
    for case in data["cases"]:
        times = case["times_us"]
        ours, gloo, direct = times["torch"], times["gloo"], times.get("unisono")
        lines.append(
            f"| {with_unit(case['bytes'])} | {microseconds(ours)} | {microseconds(gloo)} "
            f"| **{factor(gloo / ours)}** "
            f"| {microseconds(direct) if direct else ''} |"
        )
    return "\n".join(lines) + "\n"


def training_table(data: dict) -> str:
    """Return the table of training steps."""
    lines = ["| | on Unisono ms | on Gloo ms | ratio | silent ms |", "|---|--:|--:|--:|--:|"]
    for case, seconds in data["seconds"].items():
        ours, gloo, silent = seconds["unisono"] * 1e3, seconds["gloo"] * 1e3, seconds.get("silent")
        rest = f"{silent * 1e3:.1f}" if silent else ""
        lines.append(f"| {case} | {ours:.1f} | {gloo:.1f} | **{gloo / ours:.2f}** | {rest} |")
    return "\n".join(lines) + "\n"


def strategies_table(data: dict) -> str:
    """Return the table of steps with our strategies and with torch's."""
    lines = [
        "| | ours ms | torch on Unisono ms | ratio | torch on Gloo ms | ratio | alone ms |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for case, seconds in data["seconds"].items():
        if "ours" not in seconds:
            continue
        ours, on_ours, on_gloo = (seconds[name] * 1e3 for name in ("ours", "unisono", "gloo"))
        alone = f"{seconds['alone'] * 1e3:.1f}" if "alone" in seconds else ""
        lines.append(
            f"| {case} | {ours:.1f} | {on_ours:.1f} | {on_ours / ours:.2f} | {on_gloo:.1f} "
            f"| **{on_gloo / ours:.2f}** | {alone} |"
        )
    lines += ["", "| | communication ms | exposed ms | |", "|---|--:|--:|--:|"]
    for case, seconds in data["seconds"].items():
        if "exposed" in seconds:
            exposed, whole = seconds["exposed"] * 1e3, seconds["all"] * 1e3
            lines.append(f"| {case} | {whole:.1f} | {exposed:.1f} | **{exposed / whole:.0%}** |")
    return "\n".join(lines) + "\n"


def versions_table(data: dict) -> str:
    """Return the table of two versions: the median of all turns, and the range."""
    lines = ["| | before µs | after µs | after / before |", "|---|--:|--:|--:|"]
    for case, times in data["compared"].items():
        medians = [statistics.median(times[version]) for version in ("before", "after")]
        cells = [
            f"{microseconds(median)} ({microseconds(min(times[version]))} to {microseconds(max(times[version]))})"
            for version, median in zip(("before", "after"), medians, strict=True)
        ]
        name = re.sub(r"(\d+) B\b", lambda found: with_unit(int(found[1])), case)
        lines.append(f"| {name} | {' | '.join(cells)} | {medians[1] / medians[0]:.2f} |")
    return "\n".join(lines) + "\n"


def ranges(data: dict, nbytes: int) -> dict[str, tuple[str, str]]:
    """Return the lowest and highest number of several runs: our time, and the ratios to Gloo and to the best MPI."""
    found: dict[str, list[float]] = {"time": [], "gloo": [], "mpi": []}
    for run in data["runs"]:
        (times,) = (case["times_us"] for case in run["cases"] if case["bytes"] == nbytes)
        found["time"].append(times["unisono"])
        found["gloo"].append(times["gloo"] / times["unisono"])
        found["mpi"].append(min(times[peer] for peer in times if peer.startswith("mpi")) / times["unisono"])
    low, high = min(found["time"]), max(found["time"])
    texts = {"time": (microseconds(low), microseconds(high))}
    for peer in ("gloo", "mpi"):
        texts[peer] = (factor(min(found[peer])).rstrip("×"), factor(max(found[peer])).rstrip("×"))
    return texts


def runs_table(data: dict) -> str:
    """Return the table of one command that was run several times."""
    lines = ["| bytes | Unisono µs | ratio to the best MPI | to Gloo |", "|--:|--:|--:|--:|"]
    for case in data["runs"][0]["cases"]:
        row = ranges(data, case["bytes"])
        cells = (" to ".join(row[name]) for name in ("time", "mpi", "gloo"))
        lines.append(f"| {with_unit(case['bytes'])} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


PEERS = {"gloo": "Gloo", "mpi-tcp": "Open MPI, TCP", "mpi-ucx": "Open MPI, UCX"}


def hosts_table(data: dict) -> str:
    """Return the table of a collective between hosts: the lowest time of several blocks, and the median of ours.

    The ratio is that of the fastest peer to Unisono in the same job. Open MPI over UCX has a second job.
    """
    rate = data.get("rate_bytes_per_s")
    cases = data["placements"].values()
    jobs = [job for case in cases for job in (case["us"], case.get("second_job_us", {}))]
    measured = {peer for job in jobs for times in job.values() for peer in times}
    peers = [peer for peer in PEERS if peer in measured]
    collectives = {case.get("collective", "all_reduce") for case in data["placements"].values()}
    heading = ["hosts × ranks", *(["collective"] if len(collectives) > 1 else []), "bytes", "Unisono µs"]
    heading += [f"{PEERS[peer]} µs" for peer in peers] + ["fastest peer / Unisono"] + ["of the bound"] * bool(rate)
    words = 2 if len(collectives) > 1 else 1
    lines = [f"| {' | '.join(heading)} |", "|" + "---|" * words + "--:|" * (len(heading) - words)]
    for name, case in data["placements"].items():
        for text, first in case["us"].items():
            nbytes, ours = int(text), first["unisono"]
            second = case.get("second_job_us", {}).get(text, {"unisono": ours})
            times = {**second, **first}
            cells = [name.split()[0].replace("x", " × "), *([case["collective"]] if len(collectives) > 1 else [])]
            cells += [with_unit(nbytes), f"{microseconds(min(ours))} ({microseconds(statistics.median(ours))})"]
            cells += [microseconds(min(times[peer])) if peer in times else "" for peer in peers]
            ratios = [
                min(job[peer]) / min(job["unisono"]) for job in (first, second) for peer in peers if peer in job
            ]
            ratio = min(ratios, default=None)
            cells.append("" if ratio is None else f"{ratio:.2f}×" if ratio < 2 else factor(ratio))
            if rate:
                bound_us = 2 * (case["hosts"] - 1) / case["hosts"] * nbytes / rate * 1e6
                cells.append(f"{min(ours) / bound_us:.2f}" if nbytes >= 1 << 16 else "")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def facts_table(data: dict) -> str:
    """Return the table of single measurements."""
    lines = ["| | measured | command |", "|---|---|---|"]
    lines += [f"| {fact['what']} | {fact['measured']} | {fact['command']} |" for fact in data["facts"]]
    return "\n".join(lines) + "\n"


def host_training_table(data: dict) -> str:
    """Return the table of training steps on several hosts, by the rate of their links."""
    lines = ["| links | step | Unisono ms | Gloo ms | Gloo / Unisono | Unisono, fp8 ms | silent ms |",
             "|---|---|--:|--:|--:|--:|--:|"]  # fmt: skip
    for rate, run in data.items():
        for step, seconds in run["seconds"].items():
            ours, gloo = seconds["unisono"], seconds["gloo"]
            others = [seconds.get(name) for name in ("unisono, fp8", "silent")]
            cells = [rate, step, f"{ours * 1e3:.0f}", f"{gloo * 1e3:.0f}", f"{gloo / ours:.2f}×"]
            cells += ["" if each is None else f"{each * 1e3:.0f}" for each in others]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def measurement(name: str) -> dict:
    """Return one measurement, named ``<machine>/<file>``."""
    return json.loads((MEASUREMENTS / f"{name}.json").read_text())


def table(name: str) -> str:
    """Return the table of one measurement, named ``<machine>/<file>``."""
    data = measurement(name)
    if "compared" in data:
        return versions_table(data)
    if "runs" in data:
        return runs_table(data)
    if "placements" in data:
        return hosts_table(data)
    if "facts" in data:
        return facts_table(data)
    if all("Gbit/s" in key for key in data):
        return host_training_table(data)
    if "seconds" in data:
        of_strategies = any("ours" in case for case in data["seconds"].values())
        return strategies_table(data) if of_strategies else training_table(data)
    if any(contender["name"] == "torch" for contender in data["contenders"]):
        return torch_table(data)
    lines = ["| bytes | Unisono µs | best peer | its µs | ratio | Gloo | × memcpy |", "|--:|--:|---|--:|--:|--:|--:|"]
    for case in data["cases"]:
        times = dict(case["times_us"])
        ours = times.pop("unisono")
        memcpy = times.pop("memcpy", None)
        gloo = times.get("gloo")
        best = min(times, key=lambda peer: times[peer]) if times else None
        lines.append(
            f"| {with_unit(case['bytes'])} | {microseconds(ours)} | "
            + (f"{best} | {microseconds(times[best])} | **{times[best] / ours:.2f}** | " if best else "| | | ")
            + (f"{factor(gloo / ours)} | " if gloo else "| ")
            + (f"{ours / memcpy:.2f} |" if memcpy and case["bytes"] >= 1 << 20 else "|")
        )
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """Return a page with current tables."""
    return page_parts.fill(text, table)


if __name__ == "__main__":
    machine, *added = sys.argv[1:] or [""]
    for path in map(Path, added):
        folder = MEASUREMENTS / machine
        folder.mkdir(exist_ok=True)
        (folder / path.name).write_text(json.dumps(condensed(json.loads(path.read_text())), indent=1) + "\n")
    for path in PAGES:
        path.write_text(page(path.read_text()))
