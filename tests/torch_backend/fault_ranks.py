"""Starts ranks of torch.distributed for tests that inject faults, and collects their outcomes.

Every job ends with a check that it left nothing behind, and has a time limit after which its ranks are killed.
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
LIMIT_S = 60.0  # of a job, which takes seconds on an idle machine
EXIT_COMPLETELY = (
    "test_torch_exit",
)  # tests in which even destructors of C++ libraries run; it takes 0.1 s per rank
SOON_S = 2.0  # within which a rank must raise after a fault


# ---- in a rank ---------------------------------------------------------------------------------------------------


class Rank:
    """The first argument of the function that a rank runs."""

    def __init__(self, rank: int, size: int, folder: Path) -> None:
        self.rank, self.size, self.folder = rank, size, folder

    def join(self, timeout_s: float = 60.0, store: str = "store", size: int | None = None) -> None:
        """Call init_process_group; the store is a file of this name."""
        import torch.distributed as dist

        size = size or self.size
        file = dist.FileStore(str(self.folder / store), size)
        limit = timedelta(seconds=timeout_s)
        dist.init_process_group("unisono", store=file, rank=self.rank, world_size=size, timeout=limit)

    def report(self, word: str) -> None:
        """Report to the test that this rank has reached a point."""
        with (self.folder / f"reported-{self.rank}").open("a") as file:
            file.write(json.dumps([word, time.monotonic()]) + "\n")

    def run(self, function: Callable[..., Any], args: list[Any]) -> None:
        """Call the function; record an exception that it raises, which ends this process."""
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
    """The result of a rank: its exit code, output, and returned value or error."""

    code: int
    output: str
    ended_at: float
    value: Any = None
    error: tuple[str, ...] = ()  # the classes of the exception
    text: str = ""
    about: int | None = None  # the rank that the error is about
    at: float = 0.0  # the time when it was raised

    def check_raised(self, kind: str, *texts: str) -> None:
        """Assert that the rank raised such an error and exited with code 1."""
        assert kind in self.error, f"{self.error} {self.text}\n{self.output}"
        for text in texts:
            assert text in self.text, self.text
        assert self.code == 1, f"exit code {self.code}\n{self.output}"


class ForkServer:
    """The connection to the process that forks ranks (fork_server.py)."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "fork_server.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            process_group=0, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self.ended: dict[int, tuple[int, float]] = {}  # pid: exit code and time

    def request(self, answer: str, **request: Any) -> Any:
        """Send a request; return the answer."""
        assert self.process.stdin is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        while answer not in (event := self.listen()):
            pass
        return event[answer]

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def listen(self) -> dict[str, Any]:
        """Return the next event that it reports."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the fork server exited with {self.process.wait()}"
        event: dict[str, Any] = json.loads(line)
        if "ended" in event:
            self.ended[event["ended"]] = (event["code"], event["at"])
        return event


@functools.cache
def the_fork_server() -> ForkServer:
    """Return the only fork server. It exits when it is closed or when this process ends for any reason."""
    return ForkServer()


class Job:
    """The running ranks of one test."""

    def __init__(self, folder: Path, function: Callable[..., Any], size: int, limit_s: float) -> None:
        self.folder, self.function, self.size = folder, function, size
        self.deadline = time.monotonic() + limit_s
        self.fork_server = the_fork_server()
        self.pids: dict[int, int] = {}

    def start(self, rank: int, args: tuple[Any, ...], environment: dict[str, str]) -> None:
        """Start a rank."""
        request = {
            "module": self.function.__module__, "function": self.function.__name__, "args": args, "rank": rank,
            "size": self.size, "folder": str(self.folder), "output": str(self.folder / f"output-{rank}"),
            "environment": {"TMPDIR": os.path.realpath(self.folder / "temporary"), **environment},
            "exits_completely": self.function.__module__ in EXIT_COMPLETELY,
            "path": [str(HERE), str(HERE.parent), str(HERE.parent.parent)],
        }  # fmt: skip
        self.pids[rank] = self.fork_server.request("started", start=request)

    def kill(self, rank: int, number: int) -> float:
        """Send a signal to a rank; return the time."""
        os.kill(self.pids[rank], number)
        return time.monotonic()

    def reported(self, rank: int) -> dict[str, float]:
        """Return the points that a rank has reported so far, with their times."""
        try:
            return dict(json.loads(line) for line in (self.folder / f"reported-{rank}").read_text().splitlines())
        except FileNotFoundError:
            return {}

    def wait_for(self, word: str, *ranks: int) -> None:
        """Wait until these ranks (default: all) have reported a point."""
        for rank in ranks or range(self.size):
            while word not in self.reported(rank):
                assert time.monotonic() < self.deadline, f"rank {rank} has not reported {word}:\n{self.output(rank)}"
                assert self.pids[rank] not in self.fork_server.ended, self.output(rank)
                time.sleep(0.005)

    def output(self, rank: int) -> str:
        """Return the output of a rank."""
        file = self.folder / f"output-{rank}"
        return file.read_text() if file.exists() else ""

    def outcome(self, rank: int) -> Outcome:
        """Wait until a rank has exited; return its outcome."""
        self._wait(rank)
        code, at = self.fork_server.ended[self.pids[rank]]
        note = self.folder / f"outcome-{rank}"
        found = json.loads(note.read_text()) if note.exists() else {}
        return Outcome(code, self.output(rank), at, **found)

    def outcomes(self) -> list[Outcome]:
        """Wait until all ranks have exited; return their outcomes."""
        return [self.outcome(rank) for rank in range(self.size)]

    def _wait(self, rank: int) -> None:
        pid = self.pids[rank]
        while pid not in self.fork_server.ended:
            left = self.deadline - time.monotonic()
            if left <= 0:
                pytest.fail(f"rank {rank} has not ended:\n{self.output(rank)}")
            self.fork_server.request("left", left=True)  # reports precede the answer
            time.sleep(0.01)

    def end(self) -> None:
        """Kill the ranks that still run."""
        for pid in self.pids.values():
            self.fork_server.request("left", left=True)
            if pid not in self.fork_server.ended:
                os.kill(pid, 9)
        for pid in self.pids.values():
            while pid not in self.fork_server.ended:
                self.fork_server.listen()

    def check_nothing_is_left(self, before: set[str]) -> None:
        """Assert that no process, shared memory, directory or socket of this job is left."""
        deadline = time.monotonic() + 5.0  # the kernel may need a moment to clean up
        while left := [*self.fork_server.request("left", left=True), *(leftovers(self.folder) - before)]:
            assert time.monotonic() < deadline, f"left behind: {left}"
            time.sleep(0.02)


def leftovers(folder: Path) -> set[str]:
    """Return the files and sockets that ranks may have left."""
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
    """Run ``function(rank, *args)`` on ``size`` ranks; keywords become their environment variables."""
    with tempfile.TemporaryDirectory() as temporary:  # a short path, because some tests create sockets there
        (folder / "temporary").symlink_to(temporary)
        the_fork_server()
        before = leftovers(folder)
        running = Job(folder, function, size, limit_s)
        try:
            for rank in range(size):
                running.start(rank, args, environment)
            yield running
        finally:
            running.end()
        running.check_nothing_is_left(before)


def run(folder: Path, function: Callable[..., Any], size: int = 2, *args: Any, **environment: str) -> list[Outcome]:
    """Run a job to its end and return the outcomes of its ranks."""
    with job(folder, function, size, *args, **environment) as running:
        return running.outcomes()
