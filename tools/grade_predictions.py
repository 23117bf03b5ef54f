"""Grade all predictions against published measurements; print the grades and write them into docs/predictions.md.

python tools/grade_predictions.py DATA_FOLDER                 everything
python tools/grade_predictions.py DATA_FOLDER collectives     one module of tools/grading
python tools/grade_predictions.py RUNS_FOLDER blind           runs that calibrate nothing (grading.other_runs)

DATA_FOLDER holds collectives_by_algorithm.csv, nccl_tests.csv and training_configurations.csv (docs/predictions.md
names their sources). A module that is not there, or that finds no measurements, is skipped, and its part of the page
stays as it is.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import page_parts
from grading.grade import Grade, summary

PAGE = Path(__file__).parent.parent / "docs" / "predictions.md"
MODULES = ("collectives", "nccl", "this_machine", "training", "published")


def extra_parts(module: str) -> dict[str, str]:
    """Return parts of the page that a module writes besides its grades."""
    parts: Callable[[], dict[str, str]] | None = getattr(importlib.import_module(f"grading.{module}"), "parts", None)
    return parts() if parts is not None else {}


def grades_of(module: str, data: Path) -> list[Grade] | None:
    """Return the grades of a module of tools/grading; None where it is missing or has no measurements."""
    try:
        found = importlib.import_module(f"grading.{module}")
    except ModuleNotFoundError as error:
        if error.name != f"grading.{module}":
            raise
        print(f"{module}: not graded, because tools/grading/{module}.py is missing")
        return None
    try:
        return list(found.grades(data))
    except FileNotFoundError as error:
        print(f"{module}: not graded, because there is no {error.filename}")
        return None


def main(arguments: list[str]) -> int:
    """Grade what the command line names."""
    if not arguments or not Path(arguments[0]).is_dir():
        print(__doc__)
        return 2
    data, modules = Path(arguments[0]), arguments[1:] or MODULES
    parts: dict[str, str] = {}
    for module in modules:
        graded = grades_of(module, data)
        if graded:
            table, sections = (
                summary(graded),
                "\n\n".join(grade.section() for grade in graded if not grade.only_in_summary),
            )
            print(f"{module}\n{table}\n", flush=True)
            parts[f"{module}-summary"] = table
            if sections:
                parts[module] = sections
            parts.update(extra_parts(module))
    page = PAGE.read_text(encoding="utf-8")
    known = page_parts.names(page)
    PAGE.write_text(
        page_parts.fill(page, lambda name: parts.get(name, page_parts.content(page, name))), encoding="utf-8"
    )
    missing = sorted(set(parts) - set(known))
    if missing:
        print(f"docs/predictions.md has no part {', '.join(missing)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
