"""Contenders whose ranks the benchmark starts itself: Unisono, Gloo, and plain memory copies."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from unisono.algorithms.user_files import absolute
from unisono.bench.cases import Case
from unisono.bench.contender_ranks import STANDALONE, Command, ContenderRanks
from unisono.launch.run import prepare_directory


class LocalRanks(ContenderRanks):
    """One process for each rank, whose environment names its rank and size."""

    def __init__(
        self,
        name: str,
        size: int,
        python: str,
        library: str,
        *,
        answer_timeout_s: float,
        algorithm: str | None = None,
    ) -> None:
        super().__init__(name, size, answer_timeout_s=answer_timeout_s)
        self.python = python
        self._library = library
        self.algorithm = algorithm  # of Unisono, instead of the one of the case
        self.communicates = library != "memory"

    @property
    def library(self) -> str:
        """Return the name of the library among those of ``ranks``."""
        return self._library

    def command_for(self, case: Case) -> dict[str, object]:
        """Return the command for a case, with the algorithm of this contender if it has its own."""
        command = case.as_command()
        return command if self.algorithm is None else {**command, "algorithm": absolute(self.algorithm)}

    def commands(self, folder: Path, ranks: list[str]) -> list[Command]:
        """Return a process for each rank."""
        shared = self.rank_environment(**getattr(self, f"_prepare_{self._library}")(folder))
        return [
            Command(
                [self.python, *ranks], {**shared, "RANK": str(rank), "UNISONO_RANK": str(rank), **self._bound(rank)}
            )
            for rank in range(self.size)
        ]

    def _bound(self, rank: int) -> dict[str, str]:
        """Bind every rank to one core if there are enough cores, as the launchers of MPI do.

        Gloo is left to the scheduler, because it works in additional threads beside that of the caller.
        """
        cores = sorted(os.sched_getaffinity(0))
        return {"BIND_TO_CORE": str(cores[rank])} if self._library != "gloo" and self.size <= len(cores) else {}

    def _prepare_gloo(self, folder: Path) -> dict[str, str]:
        # Gloo resolves the name of the host, which may fail; the loopback interface always exists and is the fastest.
        return {
            "WORLD_SIZE": str(self.size), "RENDEZVOUS_FILE": str(folder / "rendezvous"), "GLOO_SOCKET_IFNAME": "lo",
        }  # fmt: skip

    def _prepare_torch(self, folder: Path) -> dict[str, str]:
        return {**self._prepare_gloo(folder), "PYTHONPATH": _path_with_unisono()}

    def _prepare_memory(self, folder: Path) -> dict[str, str]:
        counters = folder / "barrier"
        counters.write_bytes(bytes(8 * self.size))
        return {"WORLD_SIZE": str(self.size), "BARRIER_FILE": str(counters)}

    def _prepare_unisono(self, folder: Path) -> dict[str, str]:
        job = folder / "job"
        job.mkdir(mode=0o700)
        prepare_directory(str(job))
        return {"UNISONO_SIZE": str(self.size), "UNISONO_JOB": str(job), "PYTHONPATH": _path_with_unisono()}


def _path_with_unisono() -> str:
    """Return the PYTHONPATH of the ranks, with that of this process: unisono may be imported from it."""
    return os.pathsep.join(filter(None, [str(STANDALONE), os.environ.get("PYTHONPATH")]))


def unisono_ranks(size: int, *, answer_timeout_s: float, algorithm: str | None = None) -> LocalRanks:
    """Return Unisono; with an algorithm, the contender ``unisono:<algorithm>``."""
    name = "unisono" if algorithm is None else f"unisono:{algorithm}"
    return LocalRanks(name, size, sys.executable, "unisono", answer_timeout_s=answer_timeout_s, algorithm=algorithm)


def torch_ranks(size: int, *, answer_timeout_s: float) -> LocalRanks:
    """Return Unisono called through torch.distributed."""
    return LocalRanks("torch", size, sys.executable, "torch", answer_timeout_s=answer_timeout_s)


def memory_ranks(size: int, *, answer_timeout_s: float) -> LocalRanks:
    """Return ranks that only copy memory, all at the same time."""
    return LocalRanks("memcpy", size, sys.executable, "memory", answer_timeout_s=answer_timeout_s)
