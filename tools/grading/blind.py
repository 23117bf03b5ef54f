"""Grades the presets on runs that played no part in their calibration: other numbers of nodes, days and machines.

python tools/grade_predictions.py FOLDER blind      (FOLDER as grading.other_runs makes it)
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from grading.collectives import TARGETS, grade
from grading.grade import Grade
from grading.machines import LUMI, MACHINES, Machine
from grading.mapping import Implementation
from grading.measurements import Row, read
from grading.other_runs import SETS
from grading.prediction import programs_of

MOST_RANKS = 1024  # that are simulated
MOST_QUADRATIC_RANKS = 256  # and where the number of messages grows with the square of the number of ranks
TITLES = {"mare_nostrum": "MareNostrum 5", "leonardo": "Leonardo", "fugaku": "Fugaku", "lumi": "LUMI"}


def grades(data: Path) -> list[Grade]:
    """Return the grade of each machine in each set that the folder has."""
    made = []
    for name in SETS:
        if not (data / name).is_dir():
            continue
        rows = read(data / name)
        found = [grade_machine(name, machine, rows) for machine in (*MACHINES, LUMI)]
        made += [each for each in found if each.errors]
        of_presets = [each for each in found if each.errors and TITLES["lumi"] not in each.title]
        errors = [error for each in of_presets for error in each.errors]
        picks = [pick for each in of_presets for pick in each.picks]
        made.append(Grade(f"{name} set: all machines that have a preset", errors, picks, targets=TARGETS))
    if not made:
        raise FileNotFoundError(2, "set of runs", str(data / "first"))
    return [replace(each, only_in_summary=True) for each in made]


def grade_machine(name: str, machine: Machine, rows: list[Row]) -> Grade:
    """Return the grade of a machine on a set; nothing calibrates."""
    own = [row for row in rows if row.system == machine.system]
    sizes = sorted({row.nodes for row in own}, key=lambda nodes: (len(nodes), nodes))
    title = f"{name} set: {TITLES[machine.system]}, {', '.join(sizes)} nodes"
    blind = replace(
        machine, title=title, nodes=tuple(sizes), calibrates=lambda row: False, calibration="none", explanation="",
        too_long=is_too_long,
    )  # fmt: skip
    return grade(blind, own)


@cache
def is_quadratic(made: Implementation) -> bool:
    """Return whether the number of messages of a program grows with the square of the number of ranks."""
    few, many = (len(programs_of(made, size, 1, 1).receives) for size in (16, 32))
    return many > 3 * few


def is_too_long(row: Row, made: Implementation) -> bool:
    """Return whether the simulation of a row takes minutes."""
    return row.size > MOST_RANKS or (row.size > MOST_QUADRATIC_RANKS and is_quadratic(made))
