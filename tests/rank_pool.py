"""Ranks that stay alive between tests: starting processes for each of hundreds of cases would take minutes."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from unisono.launch.spawn import outcomes_of
from unisono.launch.unix_process_group import die_with_parent

LIMIT_S = 300  # a rank that takes longer for one task hangs


def _serve(comm: Any, lines: Sequence[Connection]) -> None:
    line = lines[comm.rank]
    while (task := line.recv()) is not None:
        function, arguments = task
        try:
            line.send((True, function(comm, *arguments)))
        except BaseException:
            line.send((False, traceback.format_exc()))


class RankPool:
    """A job of ``size`` ranks that executes functions on request."""

    def __init__(self, size: int) -> None:
        pairs = [multiprocessing.Pipe() for _ in range(size)]
        self.size = size
        self.failed = False
        self.lines = [ours for ours, _ in pairs]
        theirs = [end for _, end in pairs]
        # A separate process waits for the ranks; this one only sends them tasks.
        context = multiprocessing.get_context("fork")
        self.host = context.Process(target=self._host, args=(size, theirs, os.getpid()))
        self.host.start()
        for end in theirs:
            end.close()

    @staticmethod
    def _host(size: int, theirs: list[Connection], parent: int) -> None:
        die_with_parent(parent)
        multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
        outcomes_of(_serve, size, theirs, timeout=60)

    def call(self, function: Callable[..., Any], *arguments_of_each: Sequence[Any]) -> list[Any]:
        """Call ``function(comm, ...)`` on every rank; argument i of rank r is ``arguments_of_each[i][r]``."""
        self.failed = True  # until all ranks have answered, and none has raised
        for rank, line in enumerate(self.lines):
            line.send((function, tuple(each[rank] for each in arguments_of_each)))
        answers = [self._answer(rank) for rank in range(self.size)]
        self.failed = not all(fine for fine, _ in answers)
        for rank, (fine, answer) in enumerate(answers):
            assert fine, f"rank {rank} of {self.size}:\n{answer}"
        return [answer for _, answer in answers]

    def _answer(self, rank: int) -> tuple[bool, Any]:
        assert self.lines[rank].poll(LIMIT_S), f"rank {rank} of {self.size} has not answered for {LIMIT_S} s"
        return self.lines[rank].recv()

    def close(self) -> None:
        """End the ranks."""
        if self.failed:
            self.host.kill()  # its ranks, which may wait for each other, end with it
        for line in self.lines:
            if not self.failed:
                line.send(None)
            line.close()
        self.host.join()
        self.host.close()


class RankPools:
    """Pools of ranks by size, shared by many tests."""

    def __init__(self, *sizes: int) -> None:
        self.pools = {size: RankPool(size) for size in sizes}

    def __getitem__(self, size: int) -> RankPool:
        return self.pools[size]

    def replace_failed(self) -> None:
        """Replace the pools in which a call has failed: their ranks may no longer match each other's calls."""
        for size, pool in self.pools.items():
            if pool.failed:
                pool.close()
                self.pools[size] = RankPool(size)

    def close(self) -> None:
        """End all ranks."""
        for pool in self.pools.values():
            pool.close()
