"""Write the numbers and lists of docs/torch_suite.md from what tools/torch_suite.py found.

A test that passes on Gloo must pass on ours, unless torch refuses it to any other backend.
"""

from __future__ import annotations

import collections
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import torch_suite_files_page

Tests = Mapping[str, Mapping]  # by name: outcome, and why if it did not pass

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "torch_suite.md"
FOUND = ROOT / "docs" / "measurements" / "torch_suite-{backend}.json"
PART = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
OUTCOMES = ("passed", "failed", "refused", "skipped")
WORDED = "worded"  # passes when the texts of errors are not compared


def counts(found: Tests) -> dict[str, int]:
    """Return how many tests passed, failed, were refused by torch, and were skipped."""
    return {wanted: sum(test["outcome"] == wanted for test in found.values()) for wanted in OUTCOMES}


def load() -> tuple[dict, dict]:
    """Return what was found on ours and on Gloo."""
    ours, gloo = (json.loads(Path(str(FOUND).format(backend=name)).read_text()) for name in ("unisono", "gloo"))
    return ours, gloo


def unexplained(ours: Tests, gloo: Tests) -> list[str]:
    """Return the tests that pass on Gloo and fail on ours, or were not run on ours."""
    passed = [name for name, test in gloo.items() if test["outcome"] == "passed"]
    return [name for name in passed if name not in ours or ours[name]["outcome"] not in ("passed", "refused")]


def page(text: str) -> str:
    """Return the text of the page with its numbers and lists renewed."""
    ours, gloo = load()
    parts = {
        "counts": _table(ours["tests"], gloo["tests"]) + f"\n\ntorch {ours['torch']}; tensors on the CPU.",
        "differences": _differences(ours["tests"], gloo["tests"]),
        "skipped": _reasons(ours["tests"]),
        **torch_suite_files_page.parts(),
    }
    return PART.sub(lambda part: f"{part[1]}{parts[part[2]]}\n{part[3]}", text)


def _table(ours: Tests, gloo: Tests) -> str:
    lines = [f"| backend | tests | {' | '.join(OUTCOMES)} |", "|---|--:|" + "--:|" * len(OUTCOMES)]
    for name, found in (("unisono", ours), ("gloo", gloo)):
        lines.append(f"| {name} | {len(found)} | {' | '.join(map(str, counts(found).values()))} |")
    return "\n".join(lines)


def _differences(ours: Tests, gloo: Tests) -> str:
    """Say which tests went differently, and why: those with the same reason together."""
    names = collections.defaultdict(list)
    for name, theirs in gloo.items():
        found = ours.get(name, {"outcome": "not run"})
        if found["outcome"] != theirs["outcome"]:
            odd = theirs if found["outcome"] == "passed" else found  # the one that says why
            names[found["outcome"], theirs["outcome"], odd.get("why", "")].append(f"`{name}`")
    return "\n".join(
        f"- {found} on unisono, {theirs} on gloo: {', '.join(tests)}. {why}"
        for (found, theirs, why), tests in sorted(names.items())
    ) or "None."  # fmt: skip


def _reasons(found: Tests) -> str:
    number = collections.Counter(test["why"].strip() for test in found.values() if test["outcome"] == "skipped")
    rows = [f"| {count} | {why} |" for why, count in number.most_common()]
    return "\n".join(["| tests | torch's reason |", "|--:|---|", *rows])


def last_words(why: str) -> str:
    """Return why, in one line: of a traceback the message."""
    said = [line for line in why.splitlines() if re.match(r"[\w.]+(Error|Timeout|Lost|Exception)\b.*: ", line)]
    return f"`{said[-1].strip()}`" if said else why.strip()


def write() -> int:
    """Write the page; the exit status is 1 if a test passes on Gloo alone."""
    PAGE.write_text(page(PAGE.read_text()))
    ours, gloo = load()
    missing = unexplained(ours["tests"], gloo["tests"])
    missing += torch_suite_files_page.unexplained(*(found["tests"] for found in torch_suite_files_page.load()))
    for name in missing:
        print(f"{name} passes on gloo and not on unisono", file=sys.stderr)
    return 1 if missing else 0
