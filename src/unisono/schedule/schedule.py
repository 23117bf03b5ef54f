"""A schedule: the programs of all ranks, generated on demand.

Nothing is stored: ``program(rank)`` runs the author's generator again, so a schedule of 100,000 ranks costs
nothing until a rank is requested. Code that needs the same steps every time works on a frozen schedule (frozen.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from unisono.errors import ScheduleError, UsageError
from unisono.schedule import messages
from unisono.schedule.checking import Bounds, checked
from unisono.schedule.ops import Step

# The greatest channel depth that an algorithm may declare. The engine's channels hold three messages more than the
# proof needs (docs/adr/0008, docs/adr/0034), and eight in all.
DEEPEST: Final = 5
# As the depth of a proof: the depth that the algorithm declares.
DECLARED: Final = "declared"
Depth = int | Literal["declared"] | None  # None: unbounded


@dataclass(frozen=True)
class Schedule:
    """The steps of every rank, for one algorithm at one size.

    ``Algorithm.schedule(size)`` returns one. ``collective`` and ``algorithm`` are names, and ``size`` is the number
    of ranks. The vector has ``chunks`` chunks. A rank has ``slots`` slots: first those of the collective (one for
    each chunk, two where input and output are separate), then the scratch slots that the algorithm declared. ``make``
    runs the author's program for a rank. ``root`` is None (default) where the collective has no root. ``options`` are
    those that were passed to the algorithm. ``own_step_limit`` replaces the number of steps after which a program is
    considered endless. ``depth`` (default 1) is the number of messages that a channel must hold, at least.
    """

    collective: str
    algorithm: str
    size: int
    chunks: int
    slots: int
    make: Callable[[int], Iterable[object]] = field(repr=False)
    root: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    own_step_limit: int | None = field(default=None, repr=False)
    depth: int = 1

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
        """The number of steps after which a program is considered endless."""
        return self.own_step_limit or 1000 + 64 * (self.slots + self.size)

    def program(self, rank: int) -> Iterator[Step]:
        """Run the author's program for ``rank`` and yield its steps, each of them checked.

        UsageError is raised if there is no such rank, and ScheduleError if a step is invalid.
        """
        self.check_rank(rank)
        try:
            yield from checked(lambda: self.make(rank), Bounds(rank, self.size, self.slots, self.step_limit))
        except ScheduleError as error:
            raise error.at(algorithm=self.label, size=self.size) from error.__cause__

    def check_rank(self, rank: int) -> None:
        """Raise UsageError if there is no rank ``rank``."""
        if not 0 <= rank < self.size:
            raise UsageError(messages.NO_RANK_OF_SCHEDULE(algorithm=self.label, rank=rank, last=self.size - 1))
