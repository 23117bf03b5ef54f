"""Grades predictions of NCCL calls against nccl_tests.csv, and against published results that were not fitted to.

``Row.fitted`` says which rows ``nccl_fit.py`` uses; the others are graded. No number belongs to an algorithm or a
collective.
"""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from grading.grade import Grade
from grading.nccl_blind import PUBLISHED
from grading.nccl_libraries import POLARIS, TCP_SETUPS, libraries
from grading.nccl_model import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER, Library, predict
from grading.nccl_texts import (
    A100,
    BLIND,
    BLIND_REMARKS,
    FITTED_TO,
    H100,
    LIBFABRIC,
    OUTSIDE,
    P4DE,
    PARAMETERS,
    REMARKS,
    TCP,
)
from unisono.simulator import simulate

FILE = "nccl_tests.csv"
COLLECTIVES = {
    "allreduce": ALL_REDUCE, "all_reduce": ALL_REDUCE, "allgather": ALL_GATHER, "all_gather": ALL_GATHER,
    "reducescatter": REDUCE_SCATTER, "alltoall": ALL_TO_ALL,
}  # fmt: skip
LEAST, MOST = 1 << 10, 1 << 30
TARGETS = {"median": 0.15}
TWO_NODES = 8  # ranks, on Polaris
OLDER = "n8.g4.2023-10-13"  # one file of another year, with another installation of the machine


class Row(NamedTuple):
    """A measurement; ``nbytes`` is the whole vector."""

    library: str
    collective: str
    nbytes: int
    ranks: int
    seconds: float
    calibrates: bool = False  # whatever its size: from a source that is not graded

    @property
    def fitted(self) -> bool:
        """Whether numbers are fitted to this row: on Polaris those of 2 nodes, elsewhere 1 KiB, 4 KiB, ..., 1 GiB."""
        if self.calibrates:
            return True
        if self.library in POLARIS:
            return self.ranks == TWO_NODES
        return self.nbytes.bit_length() % 2 == 1


def rows(path: Path) -> Iterator[Row]:
    """Yield the measurements of the four collectives from 1 KiB to 1 GiB, out of place."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            nbytes, collective = int(row["bytes"]), COLLECTIVES.get(row["coll"])
            if collective is None or not LEAST <= nbytes <= MOST or OLDER in row["source"]:
                continue
            library = row["variant"] or row["system"]
            yield Row(library, collective, nbytes, int(row["ranks"]), float(row["oop_us"]) * 1e-6)


def errors(library: Library, measured: Iterable[Row], run: Callable[..., Any] = simulate) -> list[float]:
    """Return |predicted / measured - 1| of each row."""
    return [abs(predict(library, row.collective, row.nbytes, row.ranks, run) / row.seconds - 1) for row in measured]


def grades(data: Path) -> list[Grade]:
    """Return a grade for each machine, one for all, and one for machines that are not in the file."""
    measured: dict[str, list[Row]] = defaultdict(list)
    for row in rows(data / FILE):
        if not row.fitted:
            measured[row.library].append(row)
    known = libraries()
    groups = {
        A100: ["8xA100-SXM4-40GB NVSwitch"],
        H100: ["DGX H100 1 node"],
        P4DE: ["2x p4de.24xlarge A100"],
        LIBFABRIC: [name for name in POLARIS if name.split()[1] not in TCP_SETUPS],
        TCP: [name for name in POLARIS if name.split()[1] in TCP_SETUPS],
    }
    found = {
        title: [pair for name in names for pair in _graded(known[name], measured[name])]
        for title, names in groups.items()
    }
    every = [pair for pairs in found.values() for pair in pairs]
    made = [_grade(title, pairs) for title, pairs in found.items() if pairs]
    all_machines = Grade("NCCL, all machines", [error for _, error in every], targets=TARGETS, remarks=REMARKS)
    return [*made, all_machines, outside()]


def outside() -> Grade:
    """Return the grade on published results that are not in the file, without those that calibrate."""
    lines = [
        "| machine | collective | ranks | rows | median error | predicted / measured | source |",
        "|---|---|---:|---:|---:|---|---|",
    ]
    every: list[float] = []
    for each in PUBLISHED:
        ratios = [
            predict(each.library, each.collective, nbytes, each.ranks, simulate) / (time_us * 1e-6)
            for nbytes, time_us in each.times_us.items()
        ]
        found = [abs(ratio - 1) for ratio in ratios]
        every += [] if each.calibrates else found
        title = f"{each.title}, calibrates" if each.calibrates else each.title
        lines.append(
            f"| {title} | {each.collective} | {each.ranks} | {len(found)} | {statistics.median(found):.1%} "
            f"| {', '.join(f'{ratio:.2f}' for ratio in ratios)} | {each.source} |"
        )
    return Grade(OUTSIDE, every, targets=TARGETS, parameters=BLIND, remarks="\n".join([*lines, "", BLIND_REMARKS]))


def _graded(library: Library, measured: list[Row]) -> list[tuple[Row, float]]:
    return list(zip(measured, errors(library, measured), strict=True))


def _grade(title: str, pairs: list[tuple[Row, float]]) -> Grade:
    groups: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row, error in pairs:
        groups[row.collective, row.ranks].append(error)
    lines = ["| collective | ranks | rows | median error | largest |", "|---|---:|---:|---:|---:|"]
    lines += [
        f"| {collective} | {ranks} | {len(found)} | {statistics.median(found):.1%} | {max(found):.0%} |"
        for (collective, ranks), found in sorted(groups.items())
    ]
    return Grade(
        title, [error for _, error in pairs], targets=TARGETS,
        parameters=PARAMETERS[title], fitted_to=FITTED_TO[title], remarks="\n".join(lines),
    )  # fmt: skip
