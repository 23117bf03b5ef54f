"""Write the tables and lists of docs/torch_suite.md from the results of tools/torch_suite.py.

A test that passes on Gloo must pass on Unisono, unless torch refuses the call on every other backend.
"""

from __future__ import annotations

import collections
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import page_parts
import torch_suite_files_page

Tests = Mapping[str, Mapping]  # by name: outcome, and why if it did not pass

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "torch_suite.md"
FOUND = ROOT / "docs" / "measurements" / "torch_suite" / "{backend}.json"
ON_HOSTS = ROOT / "docs" / "measurements" / "torch_suite" / "unisono-2-hosts.json"
OUTCOMES = ("passed", "failed", "refused", "skipped")
WORDED = "worded"  # passes if the texts of errors are not compared


def counts(found: Tests) -> dict[str, int]:
    """Return how many tests passed, failed, were refused by torch, and were skipped."""
    return {wanted: sum(test["outcome"] == wanted for test in found.values()) for wanted in OUTCOMES}


def load() -> tuple[dict, dict]:
    """Return the results on Unisono and on Gloo."""
    ours, gloo = (json.loads(Path(str(FOUND).format(backend=name)).read_text()) for name in ("unisono", "gloo"))
    return ours, gloo


def load_on_hosts() -> dict:
    """Return the results on Unisono with the ranks of each test on two test hosts."""
    return dict(json.loads(ON_HOSTS.read_text()))


def unexplained(ours: Tests, gloo: Tests) -> list[str]:
    """Return the tests that pass on Gloo and fail on Unisono, or did not run there."""
    passed = [name for name, test in gloo.items() if test["outcome"] == "passed"]
    return [name for name in passed if name not in ours or ours[name]["outcome"] not in ("passed", "refused")]


def page(text: str) -> str:
    """Return the page with current tables and lists."""
    ours, gloo = load()
    parts = {
        "counts": _table(ours["tests"], gloo["tests"]) + f"\n\ntorch {ours['torch']}; tensors on the CPU.",
        "differences": _differences(ours["tests"], gloo["tests"]),
        "hosts": _hosts_table(ours["tests"], load_on_hosts()["tests"]),
        "skipped": _reasons(ours["tests"]),
        **torch_suite_files_page.parts(),
    }
    return page_parts.fill(text, parts.__getitem__)


def _table(ours: Tests, gloo: Tests, names: tuple[str, str, str] = ("backend", "unisono", "gloo")) -> str:
    lines = [f"| {names[0]} | tests | {' | '.join(OUTCOMES)} |", "|---|--:|" + "--:|" * len(OUTCOMES)]
    for name, found in zip(names[1:], (ours, gloo), strict=True):
        lines.append(f"| {name} | {len(found)} | {' | '.join(map(str, counts(found).values()))} |")
    return "\n".join(lines)


def _hosts_table(one: Tests, two: Tests) -> str:
    """Return the table of the results on one and on two hosts, and the tests whose outcomes differ."""
    changed = [name for name, test in one.items() if two.get(name, {}).get("outcome") != test["outcome"]]
    table = _table(one, two, ("hosts", "one", "two"))
    return f"{table}\n\nTests with different outcomes: {', '.join(f'`{name}`' for name in changed) or 'none'}."


def _differences(ours: Tests, gloo: Tests) -> str:
    """Return the tests whose outcomes differ, grouped by reason."""
    names = collections.defaultdict(list)
    for name, theirs in gloo.items():
        found = ours.get(name, {"outcome": "not run"})
        if found["outcome"] != theirs["outcome"]:
            odd = theirs if found["outcome"] == "passed" else found  # the result that has a reason
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
    """Return the reason in one line: the message of a traceback, or the text itself."""
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
