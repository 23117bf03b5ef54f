"""Reads the measurements of collectives by algorithm."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from math import prod
from pathlib import Path

FILE = "collectives_by_algorithm.csv"


@dataclass(frozen=True)
class Row:
    """One measurement: a library's algorithm for a collective, on a machine, for a vector of ``nbytes``."""

    system: str
    nodes: str
    collective: str
    algorithm: str
    nbytes: int
    seconds: float  # the median over the iterations of the slowest rank's time

    @property
    def size(self) -> int:
        """The number of ranks; there is one on each node."""
        return prod(map(int, self.nodes.split("x")))


def read(data: Path) -> list[Row]:
    """Return all rows of the file in the folder ``data``."""
    with (data / FILE).open(newline="", encoding="utf-8") as file:
        return [
            Row(line["system"], line["nnodes"], line["coll"], line["algo"], int(line["bytes"]),
                float(line["median_us"]) * 1e-6)
            for line in csv.DictReader(file)
        ]  # fmt: skip
