"""Write the table of docs/soundness.md from the counts that the campaigns reported: `make soundness`.

    python tools/soundness_page.py RUN REPORT...        store the counts of a run, described by RUN; write the page
    python tools/soundness_page.py                      write the page from the stored counts

A campaign is a test that compares many calls with something we did not write, or injects many faults. It is marked
``campaign`` and reports its counts with pytest's ``record_property``, under one of the names in KINDS. pytest
writes these numbers into its JUnit file, and this program adds them up for each test file.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import page_parts

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "soundness.md"
COUNTS = ROOT / "docs" / "measurements" / "soundness.json"
KINDS = ("calls", "training runs", "faults", "programs", "searches")


def counts_of(*reports: Path) -> dict[str, dict[str, int]]:
    """Return the counts of each test file in JUnit reports; exit where a campaign failed."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for case in (case for report in reports for case in ElementTree.parse(report).iter("testcase")):
        if case.find("failure") is not None or case.find("error") is not None:
            sys.exit(f"{case.get('classname')}.{case.get('name')} failed: no page is written")
        file = case.get("classname", "").replace(".", "/") + ".py"
        for entry in case.iter("property"):
            if entry.get("name") in KINDS:
                counts[file][entry.get("name", "")] += int(entry.get("value", ""))
    return {file: dict(kinds) for file, kinds in sorted(counts.items())}


def table_of(counts: dict[str, dict[str, int]]) -> str:
    """Return the table: one row for each file, described by the first line of its docstring."""
    lines = ["| campaign | file | count |", "|---|---|--:|"]
    for file, kinds in counts.items():
        docstring = ast.get_docstring(ast.parse((ROOT / file).read_text())) or ""
        words = ", ".join(f"{kinds[kind]:,} {kind}" for kind in KINDS if kind in kinds)
        lines.append(f"| {docstring.splitlines()[0]} | [`{Path(file).name}`](../{file}) | {words} |")
    return "\n".join(lines) + "\n"


def filled(page: str, stored: dict[str, Any]) -> str:
    """Return the page with the table of the stored counts and a description of their run."""
    parts = {"run": f"The numbers come from {stored['run']}.", "campaigns": table_of(stored["counts"])}
    return page_parts.fill(page, parts.__getitem__)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run, *reports = sys.argv[1:]
        COUNTS.write_text(json.dumps({"run": run, "counts": counts_of(*map(Path, reports))}, indent=2) + "\n")
    PAGE.write_text(filled(PAGE.read_text(), json.loads(COUNTS.read_text())))
