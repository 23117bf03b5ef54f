"""Grades predictions of NCCL calls against nccl_tests.csv.

The rows with an even power of two bytes were used for fitting (see ``nccl_libraries.py`` and the presets); the rows
with an odd power are graded. No parameter belongs to an algorithm or a collective.
"""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from grading.grade import Grade
from grading.nccl_libraries import SETTINGS, a100, h100, p4de, polaris
from grading.nccl_model import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER, Library, predict
from unisono.simulator import simulate

FILE = "nccl_tests.csv"
COLLECTIVES = {
    "allreduce": ALL_REDUCE, "all_reduce": ALL_REDUCE, "allgather": ALL_GATHER, "all_gather": ALL_GATHER,
    "reducescatter": REDUCE_SCATTER, "alltoall": ALL_TO_ALL,
}  # fmt: skip
LEAST, MOST = 1 << 10, 1 << 30
TARGETS = {"median": 0.15}
OLDER = "n8.g4.2023-10-13"  # one file of another year, with another installation of the machine


class Row(NamedTuple):
    """A measurement; ``nbytes`` is the whole vector."""

    library: str
    collective: str
    nbytes: int
    ranks: int
    seconds: float

    @property
    def fitted(self) -> bool:
        """Whether parameters may be fitted to this row."""
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
    """Return a grade for each machine, and one for all."""
    measured: dict[str, list[Row]] = defaultdict(list)
    for row in rows(data / FILE):
        if not row.fitted:
            measured[row.library].append(row)
    settings = [polaris(name) for name in SETTINGS]
    groups = {
        "8 x A100, NVSwitch": [a100()],
        "DGX H100, 1 node": [h100()],
        "2 x p4de, EFA": [p4de()],
        "Polaris, 2 and 8 nodes, libfabric": [each for each in settings if not each.buffered],
        "Polaris, 2 and 8 nodes, TCP": [each for each in settings if each.buffered],
    }
    found = {
        title: [(row, error) for each in libraries for row, error in _graded(each, measured[each.name])]
        for title, libraries in groups.items()
    }
    every = [pair for pairs in found.values() for pair in pairs]
    made = [_grade(title, pairs) for title, pairs in found.items() if pairs]
    return [*made, Grade("NCCL, all machines", [error for _, error in every], targets=TARGETS, remarks=REMARKS)]


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
        parameters=PARAMETERS[title], fitted_to=FITTED_TO, remarks="\n".join(lines),
    )  # fmt: skip


FITTED_TO = "Fitted to the rows with 1 KiB, 4 KiB, ..., 1 GiB; graded on those with 2 KiB, 8 KiB, ..., 512 MiB."
PARAMETERS = {
    "8 x A100, NVSwitch": "Preset `dgx-a100`. Fitted: near latency with Simple and LL128, near bandwidth, and the "
    "time that one process needs to enqueue the calls of 8 GPUs (35 us, 1.5 us for each further channel, 3.3 us for "
    "each send or receive).",
    "DGX H100, 1 node": "Preset `dgx-h100`. Fitted: near latency with LL, and the bandwidth of in-switch reduction.",
    "2 x p4de, EFA": "Preset `aws-p4d`. Fitted: far latency with LL, LL128 and Simple. The best algorithm is "
    "assumed, because the choice of the plugin is not known.",
    "Polaris, 2 and 8 nodes, libfabric": "Preset `polaris` with the numbers of `tools/grading/nccl_libraries.py`: "
    "six for each of the six settings.",
    "Polaris, 2 and 8 nodes, TCP": "As above, four settings.",
}
REMARKS = """The numbers were fitted to half of the rows; the form of the model was found with all rows in view.
`python tools/grading/nccl_fit.py FILE --two-nodes` fits Polaris to the rows of 2 nodes alone and grades the rows of
8 nodes: there, the median error is 17.4 % (504 rows).

Where the predictions are wrong:

- Polaris, libfabric, 8 nodes: all-gathers with LL between 32 KiB and 1 MiB take up to five times as long as
  predicted. The same messages on 2 nodes do not; nothing in the model distinguishes the two.
- Polaris, libfabric: NCCL's ring all-reduce with LL (128 KiB on 2 nodes with NCCL 2.18) takes three to four times as
  long as the all-gather with the same messages would suggest.
- Polaris: all-to-alls below 8 KiB take 500 us on 8 nodes, and 130 us from 8 KiB on. The model has one time for both.
- One-node times below 1 MiB are those of the host, not of the network: the A100 numbers say nothing about LL.
- All-reduces on several DGX H100 (in-switch reduction with trees between hosts) are predicted by a formula that no
  row of this file tests, and the best algorithm is assumed."""
