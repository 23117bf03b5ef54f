"""Write the numbers and lists of docs/torch_suite.md from what tools/torch_suite.py found.

A test that passes on Gloo and not on ours needs an explanation below; without one this fails.
"""

from __future__ import annotations

import collections
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "torch_suite.md"
FOUND = ROOT / "docs" / "measurements" / "torch_suite-{backend}.json"
PART = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
OUTCOMES = ("passed", "failed", "skipped")

# Why a test that passes on Gloo does not pass on ours.
EXPLAINED: dict[str, str] = {}


def counts(found: Mapping[str, Mapping]) -> dict[str, int]:
    """Return how many tests passed, failed and were skipped."""
    return {wanted: sum(test["outcome"] == wanted for test in found.values()) for wanted in OUTCOMES}


def table(ours: Mapping[str, Mapping], gloo: Mapping[str, Mapping]) -> str:
    """Return the counts side by side."""
    lines = ["| backend | tests | passed | failed | skipped |", "|---|--:|--:|--:|--:|"]
    for name, found in (("unisono", ours), ("gloo", gloo)):
        lines.append(f"| {name} | {len(found)} | " + " | ".join(map(str, counts(found).values())) + " |")
    return "\n".join(lines)


def differences(ours: Mapping[str, Mapping], gloo: Mapping[str, Mapping]) -> tuple[str, list[str]]:
    """Return the tests with another outcome on ours, and those that pass on Gloo alone without an explanation."""
    lines, unexplained = [], []
    for name, theirs in gloo.items():
        found = ours.get(name, {"outcome": "missing"})
        if found["outcome"] == theirs["outcome"]:
            continue
        why = EXPLAINED.get(name)
        if why is None and theirs["outcome"] == "passed":
            unexplained.append(name)
        better = theirs if found["outcome"] == "passed" else found
        lines.append(
            f"- `{name}`: {found['outcome']} on unisono, {theirs['outcome']} on gloo. {why or last_words(better)}"
        )
    return "\n".join(lines) or "None.", unexplained


def reasons(found: Mapping[str, Mapping]) -> str:
    """Return why tests are skipped, and how many for each reason."""
    number = collections.Counter(test["why"].strip() for test in found.values() if test["outcome"] == "skipped")
    return "\n".join(
        ["| tests | torch's reason |", "|--:|---|"] + [f"| {n} | {why} |" for why, n in number.most_common()]
    )


def last_words(test: Mapping) -> str:
    """Return the message of a failure, in one line."""
    said = [
        line for line in test.get("why", "").splitlines() if re.match(r"[\w.]+(Error|Timeout|Lost|Exception)\b", line)
    ]
    return f"`{said[-1].strip()}`" if said else test.get("why", "").strip()


def write() -> int:
    """Write the page; the exit status is 1 if a difference is not explained."""
    ours, gloo = (json.loads(Path(str(FOUND).format(backend=name)).read_text()) for name in ("unisono", "gloo"))
    differ, unexplained = differences(ours["tests"], gloo["tests"])
    parts = {
        "counts": f"{table(ours['tests'], gloo['tests'])}\n\ntorch {ours['torch']}, 4 ranks, CPU tensors.",
        "differences": differ,
        "skipped": reasons(ours["tests"]),
    }
    PAGE.write_text(PART.sub(lambda found: f"{found[1]}{parts[found[2]]}\n{found[3]}", PAGE.read_text()))
    for name in unexplained:
        print(
            f"{name} passes on gloo and not on unisono; mend it, or say why in {Path(__file__).name}", file=sys.stderr
        )
    return 1 if unexplained else 0
