"""Ranks that use torch.distributed, to which a test does something: how they are started, and what became of them.

Every job ends with the check that nothing is left of it, and has a time limit after which its ranks are killed.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
LIMIT_S = 60.0  # of a job; it takes seconds, on a machine that is not busy
SOON_S = 2.0  # within which a rank must learn of a fault


# ---- in a rank ---------------------------------------------------------------------------------------------------


class Rank:
    """What the function of a rank gets."""

    def __init__(self, rank: int, size: int, folder: Path) -> None:
        self.rank, self.size, self.folder = rank, size, folder

    def join(self, timeout_s: float = 60.0, store: str = "store", size: int | None = None) -> None:
        """Call init_process_group; the store is a file of this name."""
        import torch.distributed as dist

        size = size or self.size
        file = dist.FileStore(str(self.folder / store), size)
        limit = timedelta(seconds=timeout_s)
        dist.init_process_group("unisono", store=file, rank=self.rank, world_size=size, timeout=limit)

    def say(self, word: str) -> None:
        """Tell the test that this rank has come so far."""
        with (self.folder / f"said-{self.rank}").open("a") as file:
            file.write(json.dumps([word, time.monotonic()]) + "\n")

    def run(self, function: Callable[..., Any], args: list[Any]) -> None:
        """Call the function; whatever it raises is noted and ends this process."""
        try:
            found = {"value": function(self, *args)}
        except BaseException as error:
            kinds = [kind.__name__ for kind in type(error).__mro__]
            found = {
                "error": kinds,
                "text": str(error),
                "about": getattr(error, "rank", None),
                "at": time.monotonic(),
            }
            raise
        finally:
            (self.folder / f"outcome-{self.rank}").write_text(json.dumps(found))


# ---- in the test -------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What became of a rank."""

    code: int
    output: str
    ended_at: float
    value: Any = None
    error: tuple[str, ...] = ()  # the classes of what it raised
    text: str = ""
    about: int | None = None  # the rank that the error is about
    at: float = 0.0  # when it was raised

    def check_raised(self, kind: str, *texts: str) -> None:
        """Assert that it raised this, and ended as a program does then."""
        assert kind in self.error, f"{self.error} {self.text}\n{self.output}"
        for text in texts:
            assert text in self.text, self.text
        assert self.code == 1, f"exit code {self.code}\n{self.output}"


class Nursery:
    """The process that forks ranks (nursery.py)."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "nursery.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            process_group=0, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self.ended: dict[int, tuple[int, float]] = {}  # pid: exit code, when

    def order(self, answer: str, **what: Any) -> Any:
        """Give an order; return the answer."""
        assert self.process.stdin is not None
        print(json.dumps(what), file=self.process.stdin, flush=True)
        while answer not in (told := self.listen()):
            pass
        return told[answer]

    def close(self) -> None:
        """End it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def listen(self) -> dict[str, Any]:
        """Return the next thing that it says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the nursery has ended with {self.process.wait()}"
        told: dict[str, Any] = json.loads(line)
        if "ended" in told:
            self.ended[told["ended"]] = (told["code"], told["at"])
        return told


@functools.cache
def the_nursery() -> Nursery:
    """Return the only one. It ends when it is closed, or when we end, however that is."""
    return Nursery()


class Job:
    """Ranks that run."""

    def __init__(self, folder: Path, function: Callable[..., Any], size: int, limit_s: float) -> None:
        self.folder, self.function, self.size = folder, function, size
        self.deadline = time.monotonic() + limit_s
        self.nursery = the_nursery()
        self.pids: dict[int, int] = {}

    def start(self, rank: int, args: tuple[Any, ...], environment: dict[str, str]) -> None:
        """Start one of them."""
        order = {
            "module": self.function.__module__, "function": self.function.__name__, "args": args, "rank": rank,
            "size": self.size, "folder": str(self.folder), "output": str(self.folder / f"output-{rank}"),
            "environment": {"TMPDIR": os.path.realpath(self.folder / "temporary"), **environment},
            "path": [str(HERE), str(HERE.parent), str(HERE.parent.parent)],
        }  # fmt: skip
        self.pids[rank] = self.nursery.order("started", start=order)

    def kill(self, rank: int, number: int) -> float:
        """Send a signal to a rank; return when that was."""
        os.kill(self.pids[rank], number)
        return time.monotonic()

    def said(self, rank: int) -> dict[str, float]:
        """Return what a rank has said so far, and when."""
        try:
            return dict(json.loads(line) for line in (self.folder / f"said-{rank}").read_text().splitlines())
        except FileNotFoundError:
            return {}

    def wait_for(self, word: str, *ranks: int) -> None:
        """Wait until these ranks (or all) have said something."""
        for rank in ranks or range(self.size):
            while word not in self.said(rank):
                assert time.monotonic() < self.deadline, f"rank {rank} has not said {word}:\n{self.output(rank)}"
                assert self.pids[rank] not in self.nursery.ended, self.output(rank)
                time.sleep(0.005)

    def output(self, rank: int) -> str:
        """Return what a rank has printed."""
        file = self.folder / f"output-{rank}"
        return file.read_text() if file.exists() else ""

    def outcome(self, rank: int) -> Outcome:
        """Wait until a rank has ended."""
        self._wait(rank)
        code, at = self.nursery.ended[self.pids[rank]]
        note = self.folder / f"outcome-{rank}"
        found = json.loads(note.read_text()) if note.exists() else {}
        return Outcome(code, self.output(rank), at, **found)

    def outcomes(self) -> list[Outcome]:
        """Wait until all ranks have ended."""
        return [self.outcome(rank) for rank in range(self.size)]

    def _wait(self, rank: int) -> None:
        pid = self.pids[rank]
        while pid not in self.nursery.ended:
            left = self.deadline - time.monotonic()
            if left <= 0:
                pytest.fail(f"rank {rank} has not ended:\n{self.output(rank)}")
            self.nursery.order("left", left=True)  # what it has to tell comes before the answer
            time.sleep(0.01)

    def end(self) -> None:
        """Kill what still runs."""
        for pid in self.pids.values():
            self.nursery.order("left", left=True)
            if pid not in self.nursery.ended:
                os.kill(pid, 9)
        for pid in self.pids.values():
            while pid not in self.nursery.ended:
                self.nursery.listen()

    def check_nothing_is_left(self, before: set[str]) -> None:
        """Assert that there is no process, shared memory, directory or socket of this job."""
        deadline = time.monotonic() + 5.0  # the kernel may take a moment to tidy up
        while left := [*self.nursery.order("left", left=True), *(places(self.folder) - before)]:
            assert time.monotonic() < deadline, f"left behind: {left}"
            time.sleep(0.02)


def places(folder: Path) -> set[str]:
    """Return the files that ranks may have left, sockets among them."""
    return {
        str(path) for path in [*(folder / "temporary").iterdir(), *Path("/dev/shm").iterdir()]
        if "unisono" in path.name or "torch_" in path.name
    }  # fmt: skip


@contextmanager
def job(
    folder: Path,
    function: Callable[..., Any],
    size: int = 2,
    *args: Any,
    limit_s: float = LIMIT_S,
    **environment: str,
) -> Iterator[Job]:
    """Run ``function(rank, *args)`` on so many ranks; keywords become variables of their environment."""
    with tempfile.TemporaryDirectory() as temporary:  # with a short path: some make sockets there
        (folder / "temporary").symlink_to(temporary)
        the_nursery()
        before = places(folder)
        running = Job(folder, function, size, limit_s)
        try:
            for rank in range(size):
                running.start(rank, args, environment)
            yield running
        finally:
            running.end()
        running.check_nothing_is_left(before)


def run(folder: Path, function: Callable[..., Any], size: int = 2, *args: Any, **environment: str) -> list[Outcome]:
    """Run a job to its end and return what became of the ranks."""
    with job(folder, function, size, *args, **environment) as running:
        return running.outcomes()
