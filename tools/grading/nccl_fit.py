"""Fits the numbers of ``nccl_libraries.SETTINGS`` to nccl_tests.csv and prints them.

python tools/grading/nccl_fit.py FILE ["nccl_2_21 setup4" ...]     to the rows with an even power of two bytes
python tools/grading/nccl_fit.py FILE --two-nodes [...]            to the rows of 2 nodes; graded on those of 8 nodes

Coordinate descent on the sum of |log(predicted / measured)|, in which no row counts more than LARGEST: the files have
outliers that no setting explains.
"""

from __future__ import annotations

import math
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from grading import nccl_libraries
from grading.nccl import Row, errors, rows
from grading.nccl_libraries import SETTINGS, Setting
from grading.nccl_model import predict
from unisono.simulator import simulate

LARGEST = 0.4
ROUNDS = 8
FIRST_STEP, SHRINK = 1.6, 0.6
TWO_NODES = 8  # ranks
# Where the descent begins, without and with TCP.
FIRST = {False: Setting(10, 50, 18, 3, 0.2, 30), True: Setting(25, 150, 2, 5, 0.2, 30, tcp=True)}
FREE = tuple(name for name in Setting._fields if name != "tcp")


def loss(name: str, setting: Setting, measured: list[Row]) -> float:
    """Return how far the predictions with a setting are from the measurements."""
    library = nccl_libraries.polaris(name, setting)
    ratios = [predict(library, row.collective, row.nbytes, row.ranks, simulate) / row.seconds for row in measured]
    return sum(min(LARGEST, abs(math.log(ratio))) for ratio in ratios)


def fit(name: str, measured: list[Row]) -> Setting:
    """Return the setting with the smallest loss that the descent reaches."""
    best = FIRST[SETTINGS[name].tcp]
    least, steps = loss(name, best, measured), dict.fromkeys(FREE, FIRST_STEP)
    for _ in range(ROUNDS):
        for field in FREE:
            for factor in (steps[field], 1 / steps[field]):
                tried = best._replace(**{field: getattr(best, field) * factor})
                found = loss(name, tried, measured)
                if found < least:
                    best, least = tried, found
                    break
            else:
                steps[field] = 1 + (steps[field] - 1) * SHRINK
    return best


def main(arguments: list[str]) -> int:
    """Fit the settings that the command line names."""
    two_nodes = "--two-nodes" in arguments
    path, *names = [argument for argument in arguments if argument != "--two-nodes"]
    measured, every = list(rows(Path(path))), []
    for name in names or SETTINGS:
        of_setting = [row for row in measured if row.library == name]
        used = [row for row in of_setting if (row.ranks == TWO_NODES if two_nodes else row.fitted)]
        graded = [row for row in of_setting if row not in used]
        if not used or not graded:
            continue
        setting = fit(name, used)
        found = errors(nccl_libraries.polaris(name, setting), graded)
        every += found
        print(
            f"{name}: {setting}\n  {len(graded)} other rows, median error {statistics.median(found):.1%}", flush=True
        )
    print(f"all: {len(every)} rows, median error {statistics.median(every):.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
