"""Jobs on test hosts (tools/test_hosts.py): `unisono run --hosts` starts their ranks, which stay for many calls."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from test_hosts import TestHost, TestHosts

LIMIT_S = 60.0
SERVER = Path(__file__).parent / "hosts" / "rank_server.py"


class Answer(NamedTuple):
    """The end of a call on a rank: its value or its error, and the time (time.monotonic)."""

    kind: str
    value: Any
    at_s: float


class Ended(NamedTuple):
    """The end of a job."""

    code: int
    output: str
    errors: str


def hosts_option(layout: str) -> str:
    """Return the option for a layout such as "aab": rank 2 is on host b, the others are on host a."""
    return ",".join(f"{name}:{len(list(ranks))}" for name, ranks in itertools.groupby(layout))


def run_command(hosts: TestHosts, layout: str, *program: str, options: Sequence[str] = ()) -> list[str]:
    """Return the command that runs a program on the ranks of a layout."""
    words = ["run", "--ssh", hosts.ssh, "--hosts", hosts_option(layout), "--oversubscribe", *options]
    return [sys.executable, "-m", "unisono", *words, *program]


class HostJob:
    """A job on test hosts, whose ranks execute functions on request.

    The functions are those of modules; their arguments and results are pickled.
    """

    def __init__(
        self, hosts: TestHosts, layout: str, *, connect: dict[str, Any] | None = None, options: Sequence[str] = ()
    ) -> None:
        self.hosts, self.layout, self.size = hosts, layout, len(layout)
        self.directory = tempfile.TemporaryDirectory(prefix="u-")
        socket = f"{self.directory.name}/s"
        words = [sys.executable, str(SERVER), socket, json.dumps(sys.path), json.dumps(connect or {})]
        self.lines: dict[int, Connection] = {}
        self.processes: dict[int, int] = {}  # as their hosts number them
        started: list[Connection] = []
        with Listener(socket, backlog=64) as listener:
            self.launcher = subprocess.Popen(
                run_command(hosts, layout, *words, options=options), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            try:
                listener._listener._socket.settimeout(LIMIT_S)  # type: ignore[attr-defined]
                started.extend(listener.accept() for _ in range(self.size))
                for line in started:
                    rank, process = self._received(line)
                    self.lines[rank], self.processes[rank] = line, process
            except BaseException:
                self.launcher.terminate()
                sys.stderr.write("".join(self.launcher.communicate(timeout=LIMIT_S)))
                for line in started:
                    line.close()
                self.directory.cleanup()
                raise

    def _received(self, line: Connection, limit_s: float = LIMIT_S) -> Any:
        if not line.poll(limit_s):
            raise TimeoutError(f"no answer from a rank in {limit_s:g} s")
        return line.recv()

    def start(self, rank: int, function: Callable[..., Any], *arguments: Any) -> None:
        """Let a rank begin ``function(comm, ...)``."""
        self.lines[rank].send((function, arguments))

    def start_all(self, function: Callable[..., Any], *arguments: Any, but: Sequence[int] = ()) -> list[int]:
        """Let all ranks begin a function, except some; return these ranks."""
        ranks = [rank for rank in range(self.size) if rank not in but]
        for rank in ranks:
            self.start(rank, function, *arguments)
        return ranks

    def answer(self, rank: int, limit_s: float = LIMIT_S) -> Answer:
        """Return the end of what a rank began."""
        return Answer(*self._received(self.lines[rank], limit_s))

    def call(self, function: Callable[..., Any], *arguments_of_each: Sequence[Any]) -> list[Any]:
        """Call ``function(comm, ...)`` on every rank; argument i of rank r is ``arguments_of_each[i][r]``."""
        for rank in range(self.size):
            self.start(rank, function, *(each[rank] for each in arguments_of_each))
        answers = [self.answer(rank) for rank in range(self.size)]
        for rank, answer in enumerate(answers):
            assert answer.kind == "value", f"rank {rank} of {self.layout}: {answer.value}"
        return [answer.value for answer in answers]

    def host_of(self, rank: int) -> TestHost:
        """Return the host of a rank."""
        return self.hosts[self.layout[rank]]

    def signal(self, rank: int, name: str) -> float:
        """Send a signal to a rank; return the time before (time.monotonic)."""
        now_s = time.monotonic()
        done = self.host_of(rank).run("kill", "-s", name, str(self.processes[rank]))
        assert done.returncode == 0, done.stderr
        return now_s

    def close(self) -> Ended:
        """Let the ranks leave, and wait for the end of the job."""
        for line in self.lines.values():
            with contextlib.suppress(OSError):  # the rank has ended
                line.send(None)
            line.close()
        self.lines = {}
        return self.wait()

    def wait(self) -> Ended:
        """Wait for the end of the job."""
        try:
            output, errors = self.launcher.communicate(timeout=LIMIT_S)
        finally:
            self.launcher.kill()
            self.directory.cleanup()
        return Ended(self.launcher.returncode, output, errors)

    def __enter__(self) -> HostJob:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if self.launcher.poll() is None:
            ended = self.close()
            if kind is not None:
                sys.stderr.write(ended.output + ended.errors)


def check_errors(
    job: HostJob,
    ranks: Sequence[int],
    kind: str,
    since_s: float,
    limit_s: float,
    *parts: str,
    about: int | None = None,
) -> list[str]:
    """Check that ranks raise an error of a kind in time, with certain parts in its text; return the texts."""
    answers = {rank: job.answer(rank, limit_s + LIMIT_S) for rank in ranks}
    texts = []
    for rank, answer in answers.items():
        assert answer.kind == "error", f"rank {rank}: {answer}"
        assert answer.value["kind"] == kind, f"rank {rank}: {answer.value}"
        for part in parts:
            assert part in answer.value["text"], f"rank {rank}: no {part!r} in {answer.value['text']}"
        if about is not None:
            assert answer.value["rank"] == about, f"rank {rank}: {answer.value}"
        texts.append(answer.value["text"])
    slowest_s = max(answer.at_s for answer in answers.values()) - since_s
    print(f"MEASURED {kind} on {len(ranks)} ranks after {slowest_s:.2f} s (limit {limit_s:g} s): {texts[0]}")
    assert slowest_s <= limit_s, f"{slowest_s:.2f} s: {texts}"
    return texts


def skip_reason(missing: str) -> pytest.MarkDecorator:
    """Return the mark of tests that need test hosts where a thing is missing."""
    return pytest.mark.skip(reason=f"SKIPPED, NOT TESTED BETWEEN TEST HOSTS: {missing}")
