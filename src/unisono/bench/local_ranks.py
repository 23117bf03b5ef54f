"""Contenders whose ranks we start ourselves: Gloo, Unisono, and the memory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from unisono.bench.contender_ranks import STANDALONE, Command, ContenderRanks
from unisono.launch.run import prepare_directory


class LocalRanks(ContenderRanks):
    """One process for each rank, which learn from the environment who they are."""

    def __init__(self, name: str, size: int, python: str, library: str, *, answer_timeout_s: float) -> None:
        super().__init__(name, size, answer_timeout_s=answer_timeout_s)
        self.python = python
        self._library = library
        self.communicates = library != "memory"

    @property
    def library(self) -> str:
        """Return which of the libraries of ``ranks`` it is."""
        return self._library

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
        """Give every rank a core of its own where there are enough, as the launchers of MPI do.

        Gloo is left to the scheduler: it works in threads of its own beside that of the caller.
        """
        cores = sorted(os.sched_getaffinity(0))
        return {"BIND_TO_CORE": str(cores[rank])} if self._library != "gloo" and self.size <= len(cores) else {}

    def _prepare_gloo(self, folder: Path) -> dict[str, str]:
        # Gloo asks what the name of the host means, which may be nothing; the loopback is there, and fastest.
        return {
            "WORLD_SIZE": str(self.size), "RENDEZVOUS_FILE": str(folder / "rendezvous"), "GLOO_SOCKET_IFNAME": "lo",
        }  # fmt: skip

    def _prepare_torch(self, folder: Path) -> dict[str, str]:
        return {**self._prepare_gloo(folder), "PYTHONPATH": _path_with_ours()}

    def _prepare_memory(self, folder: Path) -> dict[str, str]:
        counters = folder / "barrier"
        counters.write_bytes(bytes(8 * self.size))
        return {"WORLD_SIZE": str(self.size), "BARRIER_FILE": str(counters)}

    def _prepare_unisono(self, folder: Path) -> dict[str, str]:
        job = folder / "job"
        job.mkdir(mode=0o700)
        prepare_directory(str(job))
        return {"UNISONO_SIZE": str(self.size), "UNISONO_JOB": str(job), "PYTHONPATH": _path_with_ours()}


def _path_with_ours() -> str:
    """Return the path of the ranks; where unisono is used from its sources, it is on the path that we were given."""
    return os.pathsep.join(filter(None, [str(STANDALONE), os.environ.get("PYTHONPATH")]))


def unisono_ranks(size: int, *, answer_timeout_s: float) -> LocalRanks:
    """Return ourselves."""
    return LocalRanks("unisono", size, sys.executable, "unisono", answer_timeout_s=answer_timeout_s)


def torch_ranks(size: int, *, answer_timeout_s: float) -> LocalRanks:
    """Return ourselves, as torch.distributed shows us."""
    return LocalRanks("torch", size, sys.executable, "torch", answer_timeout_s=answer_timeout_s)


def memory_ranks(size: int, *, answer_timeout_s: float) -> LocalRanks:
    """Return ranks that only copy, all at once."""
    return LocalRanks("memcpy", size, sys.executable, "memory", answer_timeout_s=answer_timeout_s)
