"""Fits the numbers of ``nccl_libraries.FITTED`` to nccl_tests.csv and prints them.

python tools/grading/nccl_fit.py FILE                      to the rows that calibrate; the presets have these numbers
python tools/grading/nccl_fit.py FILE --to 1MiB            to those of at most 1 MiB; graded on longer vectors
python tools/grading/nccl_fit.py FILE --without NAME       to all machines but one; graded on that machine

NAME is the beginning of the name of a machine of the file. Coordinate descent on the sum of |log(predicted /
measured)|, in which no row counts more than 0.4 in the last rounds: the files have outliers that no number explains.
A number is changed only if the loss of the machines that it belongs to becomes smaller. The result is rounded to
three digits.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from grading.nccl import Row, errors, rows
from grading.nccl_blind import PUBLISHED
from grading.nccl_libraries import FITTED, libraries, preset_numbers
from grading.nccl_model import Library, predict
from unisono.networks import Network
from unisono.schedule import Schedule
from unisono.simulator import simulate

# Rounds: the most that a row counts, and the factors that are tried. The first rounds have to see all rows.
ROUNDS = ((3.0, (1.5, 1.2)), (1.0, (1.2, 1.05)), (0.4, (1.2, 1.05, 1.01)), (0.4, (1.05, 1.01)), (0.4, (1.01,)))
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
# Where the descent begins, and what a number is that no row needs: NCCL's tables (src/graph/tuning.cc, topo.h), and
# otherwise a power of ten.
FIRST = dict.fromkeys(FITTED, 10.0) | {
    "ll_gb_s": 1.0,
    "a100.near_gb_s": 240.0,
    "process.channel_us": 1.0,
    "process.peer_us": 1.0,
    "h100.near_ll_us": 0.6,
    "h100.reduce_gb_s": 309.0,
    "efa.message_us": 1.0,
    "p5.net_us": 10.0,
    "tcp.nic_gb_s": 1.0,
    "tcp.nic_2_18_setup1_gb_s": 1.0,
    "tcp.exchange_gb_s": 1.0,
}


class Time(NamedTuple):
    """The part of a prediction that a fit needs."""

    time_s: float


class Memory:
    """The simulator, and what it returned: most rows do not depend on the number that a fit changes."""

    def __init__(self) -> None:
        self.found: dict[Any, Any] = {}

    def __call__(self, schedule: Schedule, nbytes: int, network: Network, **options: Any) -> Any:
        """Simulate, or remember. The fit changes nothing else in a network; schedules are made once."""
        key = (id(schedule), nbytes, network.name, network.near, network.nics, network.endpoint)
        if key not in self.found:
            self.found[key] = Time(simulate(schedule, nbytes, network, **options).time_s)
        return self.found[key]


def loss(library: Library, measured: list[Row], most: float, memory: Memory) -> float:
    """Return how far the predictions are from the measurements."""
    ratios = [predict(library, row.collective, row.nbytes, row.ranks, memory) / row.seconds for row in measured]
    return sum(min(most, abs(math.log(ratio))) for ratio in ratios)


class Descent:
    """Coordinate descent from ``first``, in the numbers that are ``free`` (None: all).

    ``losses`` are those of the libraries with the best ``numbers`` up to now.
    """

    def __init__(
        self, measured: dict[str, list[Row]], first: dict[str, float], free: list[str] | None = None
    ) -> None:
        self.measured = measured
        self.numbers = dict(first)
        self.free = list(first) if free is None else free
        self.memory = Memory()
        self.most = 0.0
        self.losses: dict[str, float] = {}

    def _losses(self, found: dict[str, Library], names: dict[str, list[Row]] | list[str]) -> dict[str, float]:
        return {name: loss(found[name], self.measured[name], self.most, self.memory) for name in names}

    def run(self) -> dict[str, float]:
        """Return the numbers with the smallest loss that the descent reaches, rounded."""
        for self.most, steps in ROUNDS:
            self.losses = self._losses(libraries(self.numbers), self.measured)
            for name in self.free:
                for step in steps:
                    while self._moves(name, step) or self._moves(name, 1 / step):
                        pass
        return {name: float(f"{number:.3g}") for name, number in self.numbers.items()}

    def _moves(self, name: str, factor: float) -> bool:
        """Change a number if that makes the loss smaller; return whether it did."""
        tried = {**self.numbers, name: self.numbers[name] * factor}
        before, after = libraries(self.numbers), libraries(tried)
        touched = [each for each in self.measured if before[each] != after[each]]
        losses = self._losses(after, touched)
        if not touched or sum(losses.values()) >= sum(self.losses[each] for each in touched) - 1e-9:
            return False
        self.numbers = tried
        self.losses.update(losses)
        return True


def fit(measured: list[Row], names: set[str] | None = None) -> dict[str, float]:
    """Return the numbers that are fitted to rows; a number that no row needs keeps its first value.

    Numbers that the machines with ``names`` do not depend on keep the values of ``FITTED`` (None: there are none).
    """
    by_library: dict[str, list[Row]] = defaultdict(list)
    for row in measured:
        by_library[row.library].append(row)
    free = [name for name in FIRST if names is None or _changes(name) & names]
    first = {name: FIRST[name] if name in free else FITTED[name] for name in FIRST}
    return Descent(dict(by_library), first, free).run()


def _changes(name: str) -> set[str]:
    """Return the machines that a number belongs to."""
    changed = libraries({**FITTED, name: 2 * FITTED[name]})
    return {each for each, library in libraries().items() if library != changed[each]}


def published_rows() -> list[Row]:
    """Return the published results that calibrate."""
    return [
        Row(each.library.name, each.collective, nbytes, each.ranks, time_us * 1e-6, calibrates=True)
        for each in PUBLISHED
        if each.calibrates
        for nbytes, time_us in each.times_us.items()
    ]


def _median(numbers: dict[str, float], graded: list[Row]) -> str:
    found = libraries(numbers)
    every = [error for row in graded for error in errors(found[row.library], [row])]
    return f"{len(every)} rows, median error {statistics.median(every):.1%}" if every else "no rows"


def main(arguments: list[str]) -> int:
    """Fit, print the numbers, and grade them."""
    path, *options = arguments
    measured = [*rows(Path(path)), *published_rows()]
    fits: Callable[[Row], bool] = lambda row: row.fitted  # noqa: E731
    grades: Callable[[Row], bool] = lambda row: not row.fitted  # noqa: E731
    if options[:1] == ["--to"]:
        number, unit = options[1][:-3], options[1][-3:]
        most = int(number) * UNITS[unit]
        fits, grades = (lambda row: row.fitted and row.nbytes <= most), (lambda row: row.nbytes > most)
    elif options[:1] == ["--without"]:
        out = options[1]
        fits, grades = (
            (lambda row: row.fitted and not row.library.startswith(out)), lambda row: row.library.startswith(out)
        )  # fmt: skip
    graded = [row for row in measured if grades(row)]
    numbers = fit([row for row in measured if fits(row)], {row.library for row in graded} if options else None)
    print("\n".join(f'    "{name}": {number},' for name, number in numbers.items()))
    for preset, found in preset_numbers(numbers).items():
        print(f"{preset}: {', '.join(f'{key} {number:.3g}' for key, number in found.items())}")
    print("graded:", _median(numbers, graded))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
