"""Contenders that the launcher of an MPI implementation starts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from unisono.bench.contender_ranks import Command, ContenderRanks
from unisono.bench.settings import Flavour, Setting


@dataclass(frozen=True)
class Installation:
    """An installed MPI implementation: its launcher, and an interpreter with mpi4py for it."""

    flavour: Flavour
    mpiexec: str
    python: str


class MpiRanks(ContenderRanks):
    """Ranks that mpiexec starts."""

    library = "mpi"

    def __init__(
        self, name: str, size: int, installation: Installation, setting: Setting, *, answer_timeout_s: float
    ) -> None:
        super().__init__(name, size, answer_timeout_s=answer_timeout_s)
        self.installation = installation
        self.setting = setting

    def commands(self, folder: Path, ranks: list[str]) -> list[Command]:
        """Return the launcher with its options."""
        del folder
        flavour = self.installation.flavour
        oversubscribed = self.size > len(os.sched_getaffinity(0))
        around = flavour.oversubscribed if oversubscribed else flavour.spare_cores
        environment = self.rank_environment(**{**around.environment, **self.setting.environment})
        as_root = flavour.as_root if os.geteuid() == 0 else ()
        argv = [
            self.installation.mpiexec, *as_root, *around.options, *self.setting.options, "-n", str(self.size),
            self.installation.python, *ranks,
        ]  # fmt: skip
        return [Command(argv, environment)]
