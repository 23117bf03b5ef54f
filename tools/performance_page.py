"""Write the tables of docs/performance*.md from the files in docs/measurements/<machine>/.

python tools/performance_page.py                        regenerate the tables
python tools/performance_page.py MACHINE FILE.json...   add results of `unisono bench --json` first
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import page_parts

ROOT = Path(__file__).parent.parent
MEASUREMENTS = ROOT / "docs" / "measurements"
PAGES = sorted((ROOT / "docs").glob("performance*.md"))


def condensed(measured: dict) -> dict:
    """Return the numbers of a measurement that the tables show."""
    if "seconds" in measured:  # of tools/measure_training.py and tools/measure_parallel.py
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


def table(name: str) -> str:
    """Return the table of one measurement, named ``<machine>/<file>``."""
    data = json.loads((MEASUREMENTS / f"{name}.json").read_text())
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
