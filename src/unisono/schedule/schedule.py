"""A schedule: the programs of all ranks, made on demand.

Nothing is stored: ``program(rank)`` runs the author's generator anew, so a schedule of 100,000 ranks costs
nothing until somebody asks for a rank. What must mean the same program every time works on a frozen schedule
(frozen.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from unisono.errors import ScheduleError, UsageError
from unisono.schedule.checking import Bounds, checked
from unisono.schedule.ops import Step


@dataclass(frozen=True)
class Schedule:
    """What every rank does, for one algorithm at one size.

    A rank has ``slots`` slots: first those of the collective (``chunks`` of them, twice that where input and
    output are separate), then the scratch slots that the algorithm declared.
    """

    collective: str
    algorithm: str
    size: int
    chunks: int
    slots: int
    make: Callable[[int], Iterable[object]] = field(repr=False)
    root: int | None = None  # None: the collective has no root
    options: Mapping[str, Any] = field(default_factory=dict)
    own_step_limit: int | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """The name in tables and messages: ``all_reduce/ring``, ``broadcast/tree(root=2)``."""
        settings = dict(self.options)
        if self.root:
            settings["root"] = self.root
        inside = ", ".join(f"{name}={value}" for name, value in settings.items())
        return f"{self.collective}/{self.algorithm}" + (f"({inside})" if inside else "")

    @property
    def step_limit(self) -> int:
        """How many steps a program may have before it counts as one that never ends."""
        return self.own_step_limit or 1000 + 64 * (self.slots + self.size)

    def program(self, rank: int) -> Iterator[Step]:
        """Run the author's program for one rank and yield its steps, each one checked."""
        self.check_rank(rank)
        try:
            yield from checked(lambda: self.make(rank), Bounds(rank, self.size, self.slots, self.step_limit))
        except ScheduleError as error:
            raise error.at(algorithm=self.label, size=self.size) from error.__cause__

    def check_rank(self, rank: int) -> None:
        """Raise UsageError if there is no such rank."""
        if not 0 <= rank < self.size:
            raise UsageError(f"{self.label}: there is no rank {rank}; expected a rank from 0 to {self.size - 1}")
