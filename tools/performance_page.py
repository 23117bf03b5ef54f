"""Write the tables of docs/performance.md from what `unisono bench --json` measured (docs/measurements/*.json)."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
MEASUREMENTS = ROOT / "docs" / "measurements"
PAGE = ROOT / "docs" / "performance.md"
TABLE = re.compile(r"(<!-- table: ([\w.-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def condensed(measured: dict) -> dict:
    """Return what the tables need of a measurement."""
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


def in_words(count: int) -> str:
    """Write a number of bytes."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count} B"


def microseconds(value: float) -> str:
    """Write a time with three digits."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}".replace(",", " ")


def times_as_many(ratio: float) -> str:
    """Write how many times quicker."""
    return f"{ratio:.0f}×" if ratio >= 10 else f"{ratio:.1f}×"


def torch_table(data: dict) -> str:
    """Return the table of calls through torch.distributed."""
    lines = ["| bytes | on Unisono µs | on Gloo µs | ratio | `comm` µs |", "|--:|--:|--:|--:|--:|"]
    for case in data["cases"]:
        times = case["times_us"]
        ours, gloo, direct = times["torch"], times["gloo"], times.get("unisono")
        lines.append(
            f"| {in_words(case['bytes'])} | {microseconds(ours)} | {microseconds(gloo)} "
            f"| **{times_as_many(gloo / ours)}** "
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
    """Return the table of one measurement."""
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
            f"| {in_words(case['bytes'])} | {microseconds(ours)} | "
            + (f"{best} | {microseconds(times[best])} | **{times[best] / ours:.2f}** | " if best else "| | | ")
            + (f"{times_as_many(gloo / ours)} | " if gloo else "| ")
            + (f"{ours / memcpy:.2f} |" if memcpy and case["bytes"] >= 1 << 20 else "|")
        )
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """Return the page with all of its tables written anew."""
    return TABLE.sub(lambda found: found[1] + table(found[2]) + found[3], text)


if __name__ == "__main__":
    MEASUREMENTS.mkdir(exist_ok=True)
    for path in map(Path, sys.argv[1:]):  # new measurements, to be kept
        kept = condensed(json.loads(path.read_text()))
        (MEASUREMENTS / path.name).write_text(json.dumps(kept, indent=1) + "\n")
    PAGE.write_text(page(PAGE.read_text()))
