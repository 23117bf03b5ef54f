"""Extracts further runs of the measured machines from the repository of the measurements, as rows for the grading.

python -m grading.other_runs REPOSITORY FOLDER      (in tools/)

REPOSITORY is a clone of HLC-Lab/pico (MIT licence), FOLDER is where ``first`` and ``second`` are created, each with a
file of rows. No run in them is in the file that calibrates. The presets were graded on the first set before the model
was changed, and on the second only when it was finished (docs/predictions.md).

A run is an archive with one file for each size and algorithm, with the time of the slowest rank in each iteration in
nanoseconds. The first fifth of the iterations is warm-up.
"""

from __future__ import annotations

import csv
import io
import re
import statistics
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

from grading.measurements import FILE

INT32_BYTES = 4
WARM_UP = 0.2  # of the iterations
NUMBER = re.compile(rb"^\d+$", re.MULTILINE)  # a line without one is a heading, or a remark of the library
NAME = re.compile(r"[^/]+/(\d+)/(\d+)_(.+)_int32\.csv")

# Archives, and the tests in them (None: all). All have one rank per node and no GPU. Larger runs (2048 nodes of
# Leonardo, 64x64 and 32x256 nodes of Fugaku) are not used: simulations of that size with shared links take minutes.
FIRST = {
    "leonardo/2025_03_13___15_47_02": None,  # 4 nodes, all-gather
    "leonardo/2025_03_19___20_05_06": None,  # 32 nodes, all-gather
    "leonardo/2025_06_04___14_26_23": (0,),  # 64 nodes, reduce-scatter
    "leonardo/2025_03_19___20_04_47": None,  # 128 nodes, all-reduce
    "leonardo/2025_03_28___17_42_08": None,  # 1024 nodes, all-reduce and all-gather
    "mare_nostrum/2025_04_14___12_48_39": None,  # 64 nodes, scatter
    "fugaku/2025_03_27___04_01_47": None,  # 8x8x8 nodes, all collectives
}
SECOND = {
    "leonardo/2025_06_04___15_12_34": None,  # 200 nodes, all-reduce, all-gather and reduce-scatter
    "leonardo/2025_04_06___20_44_58": None,  # 254 nodes, all-gather and reduce-scatter
    "leonardo/2025_04_04___18_21_29": None,  # 256 nodes, broadcast
    "mare_nostrum/2025_06_05___15_11_38": (0,),  # 64 nodes, reduce-scatter
    "lumi/2025_03_27___19_15_25": None,  # 16 nodes, all-reduce and all-gather
    "lumi/2025_03_16___15_34_44": None,  # 32 nodes, all-reduce
    "lumi/2025_04_11___19_57_44": None,  # 100 nodes, all-gather and reduce-scatter
}
SETS = {"first": FIRST, "second": SECOND}


def content(repository: Path, path: str) -> bytes:
    """Return a file of the newest commit."""
    return subprocess.run(
        ["git", "-C", str(repository), "show", f"HEAD:results/{path}"], check=True, capture_output=True
    ).stdout


def rows(
    repository: Path, run: str, tests: tuple[int, ...] | None
) -> Iterator[tuple[str, str, str, str, int, float]]:
    """Return machine, nodes, collective, algorithm, bytes and the median in microseconds of all files of a run."""
    system, timestamp = run.split("/")
    listed = csv.DictReader(io.StringIO(content(repository, f"{system}_metadata.csv").decode()))
    described = {int(line["test_id"]): line for line in listed if line["timestamp"] == timestamp}
    with tarfile.open(fileobj=io.BytesIO(content(repository, f"{run}.tar.gz"))) as archive:
        for member in archive:
            found = NAME.fullmatch(member.name)
            if found is None or (tests is not None and int(found[1]) not in tests):
                continue
            file, test = archive.extractfile(member), described[int(found[1])]
            assert file is not None, member.name
            assert test["tasks_per_node"] == "1", member.name
            times = [float(word) for word in NUMBER.findall(file.read())]
            timed = times[int(WARM_UP * len(times)) :]
            if timed:
                nbytes = INT32_BYTES * int(found[2])
                median_us = statistics.median(timed) / 1e3
                yield system, test["nnodes"], test["collective_type"], found[3], nbytes, median_us


def main(repository: Path, folder: Path) -> None:
    """Write the sets of rows."""
    for name, runs in SETS.items():
        made = [row for run, tests in runs.items() for row in rows(repository, run, tests)]
        (folder / name).mkdir(parents=True, exist_ok=True)
        with (folder / name / FILE).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["system", "nnodes", "coll", "algo", "bytes", "median_us"])
            writer.writerows(made)
        print(f"{name}: {len(made)} rows of {len(runs)} runs")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
