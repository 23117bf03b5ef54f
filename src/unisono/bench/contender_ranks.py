"""A contender whose ranks are processes: starts them under a guard, sends commands to each and detects failures."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from unisono.bench import messages
from unisono.bench.cases import Case
from unisono.bench.contender import CaseUnsupported, Contender, ContenderFailed, Trial, TrialOptions
from unisono.message import join, listed

STANDALONE = Path(__file__).parent / "standalone"
START_TIMEOUT_S = 90.0  # importing torch takes long on a busy machine
ANSWER_TIMEOUT_S = 60.0
ERROR_GRACE_S = 5.0  # for the other ranks, after one has reported an error
CLOSE_TIMEOUT_S = 10.0
SHOWN_LINES = 12  # the last lines of standard error that are reported
# Variables of a job in which the driver itself may be running: a library would take them for its own.
FOREIGN = ("OMPI_", "PMIX_", "PRTE_", "PMI_", "HYDRA_", "MPICH_", "I_MPI_", "UNISONO_", "PYTHONHOME", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Command:
    """A process to start; a launcher starts others in turn."""

    argv: list[str]
    environment: Mapping[str, str]


@dataclass
class Rank:
    """The driver's end of the connection to one rank."""

    connection: socket.socket
    received: bytes = b""


def trial_of(answers: Mapping[int, Any]) -> Trial:
    """Return the trial that the answers of all ranks describe; raise CaseUnsupported if a rank could not run it."""
    for number, answer in sorted(answers.items()):
        if "unsupported" in answer:
            raise CaseUnsupported(answer["unsupported"])
        if "error" in answer:
            raise CaseUnsupported(messages.RANK_ERROR(rank=number, error=answer["error"]))
    return Trial(
        [[each / 1e9 for each in answers[number]["nanoseconds"]] for number in sorted(answers)],
        max(answer["mean_ns"] for answer in answers.values()) / 1e9,
        sum(answer["wrong"] for answer in answers.values()),
        max((answer["latency_ns"] / 1e9 for answer in answers.values() if "latency_ns" in answer), default=None),
    )


class ContenderRanks(Contender):
    """A contender whose ranks are processes that run ``standalone/ranks``."""

    def __init__(self, name: str, size: int, *, answer_timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        self.name = name
        self.size = size
        self.answer_timeout_s = answer_timeout_s
        self.variables: Mapping[str, str] = {}  # of the environment of the ranks, in addition
        self.cores: list[list[int]] = []  # the cores that each rank may run on
        self._ranks: dict[int, Rank] = {}
        self._guard: subprocess.Popen[bytes] | None = None
        self._listener: socket.socket | None = None
        self._output: IO[bytes] | None = None
        self._folder: Path | None = None
        self._started = 0.0
        self._failed = False

    @abstractmethod
    def commands(self, folder: Path, ranks: list[str]) -> list[Command]:
        """Return the processes to start, given a private folder and the arguments of the interpreter."""

    def rank_environment(self, **more: str) -> dict[str, str]:
        """Return an environment in which ``python -m ranks`` works."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        return {**inherited, "PYTHONPATH": str(STANDALONE), "PYTHONUNBUFFERED": "1", **self.variables, **more}

    def command_for(self, case: Case) -> dict[str, object]:
        """Return the command that the ranks are sent for a case."""
        return case.as_command()

    def start(self) -> None:
        """Start the guard, which starts the ranks."""
        self._started = time.monotonic()
        # Libraries put their temporary files into this folder too, because the guard always removes it.
        self._folder = Path(tempfile.mkdtemp(prefix="unisono-bench-"))
        try:
            address = self._folder / "driver"
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._listener.bind(str(address))
            self._listener.listen(self.size)
            commands = self.commands(self._folder, ["-m", "ranks", self.library, str(address)])
            commands_file = self._folder / "commands.json"
            temporary = {"TMPDIR": str(self._folder)}
            commands_file.write_text(json.dumps({
                "folder": str(self._folder),
                "commands": [
                    {"argv": each.argv, "environment": {**each.environment, **temporary}} for each in commands
                ],
            }))  # fmt: skip
            self._output = tempfile.TemporaryFile()  # noqa: SIM115 (close() closes it; it has no name to remove)
            self._guard = subprocess.Popen(
                [sys.executable, str(STANDALONE / "guard.py"), str(commands_file)],
                stdin=subprocess.PIPE, stdout=self._output, stderr=self._output,
                start_new_session=True,  # Ctrl-C interrupts the driver, which then closes this contender
            )  # fmt: skip
        except BaseException:
            self.close()
            raise

    @property
    @abstractmethod
    def library(self) -> str:
        """Return the name of the library among those of ``ranks``."""

    def wait_until_ready(self) -> None:
        """Wait until every rank has connected and introduced itself."""
        assert self._listener is not None
        assert self._guard is not None
        assert self._guard.stdin is not None
        deadline = self._started + START_TIMEOUT_S
        while len(self._ranks) < self.size:
            self._listener.settimeout(0.2)
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                self._check_alive()
                if time.monotonic() > deadline:
                    raise self._failure(
                        messages.RANKS_MISSING(
                            found=len(self._ranks), size=self.size, seconds=f"{START_TIMEOUT_S:.0f}"
                        )
                    ) from None
                continue
            newcomer = Rank(connection)
            hello = self._read({-1: newcomer}, deadline)[-1]
            if hello["size"] != self.size or hello["rank"] in self._ranks:
                raise self._failure(messages.WRONG_RANK(rank=hello["rank"], found=hello["size"], size=self.size))
            self._ranks[hello["rank"]] = newcomer
            self.version = hello["version"]
            self.cores.append(hello["cores"])
        with contextlib.suppress(BrokenPipeError):
            self._guard.stdin.write(b"ready\n")
            self._guard.stdin.flush()

    def measure(self, case: Case, options: TrialOptions) -> Trial:
        """Send the command to every rank and collect the answers."""
        line = json.dumps({**self.command_for(case), **options.__dict__}).encode() + b"\n"
        for number, rank in self._ranks.items():
            try:
                rank.connection.sendall(line)
            except OSError as error:
                raise self._failure(messages.RANK_GONE(rank=number, error=error)) from error
        return trial_of(self._read(self._ranks, time.monotonic() + self.answer_timeout_s))

    def _read(self, ranks: Mapping[int, Rank], deadline: float) -> dict[int, Any]:
        """Return one line from each rank."""
        answers: dict[int, Any] = {}
        with selectors.DefaultSelector() as ready:
            for number, rank in ranks.items():
                ready.register(rank.connection, selectors.EVENT_READ, number)
            while len(answers) < len(ranks):
                missing = sorted(set(ranks) - set(answers))
                if time.monotonic() > deadline:
                    late = messages.NO_ANSWER(ranks=listed(map(str, missing)))
                    errors = [
                        messages.RANK_ERROR(rank=number, error=answer["error"])
                        for number, answer in answers.items()
                        if "error" in answer
                    ]
                    raise self._failure(join([late, *errors]))
                for key, _ in ready.select(timeout=0.5):
                    rank = ranks[key.data]
                    try:
                        data = rank.connection.recv(1 << 20)
                    except OSError:
                        data = b""
                    if not data:
                        raise self._failure(
                            messages.CLOSED_EARLY() if key.data < 0 else messages.CLOSED(rank=key.data)
                        )
                    rank.received += data
                    if b"\n" in rank.received:
                        line, _, rank.received = rank.received.partition(b"\n")
                        answers[key.data] = json.loads(line)
                        ready.unregister(rank.connection)
                        if "error" in answers[key.data] or "unsupported" in answers[key.data]:
                            # The others should report the same soon; otherwise they wait for this rank in vain.
                            deadline = min(deadline, time.monotonic() + ERROR_GRACE_S)
        return answers

    def _check_alive(self) -> None:
        assert self._guard is not None
        if self._guard.poll() is not None:
            raise self._failure(
                messages.ENDED_EARLY(code=self._guard.returncode, found=len(self._ranks), size=self.size)
            )

    def _failure(self, reason: str) -> ContenderFailed:
        """Return the error with the last output of the processes, after a moment in which they can still print."""
        self._failed = True
        time.sleep(0.3)
        lines: list[str] = []
        if self._output is not None:
            self._output.seek(0)
            lines = [line for line in self._output.read().decode(errors="replace").splitlines() if line.strip()]
        return ContenderFailed("\n  ".join([reason, *lines[-SHOWN_LINES:]]))

    def disconnect(self) -> None:
        """Close the connections, which tells the ranks to end."""
        for rank in self._ranks.values():
            rank.connection.close()
        self._ranks = {}
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def close(self) -> None:
        """End all ranks: they exit by themselves if they can; otherwise the guard ends them."""
        can_exit = bool(self._ranks) and not self._failed
        self.disconnect()
        guard, self._guard = self._guard, None
        if guard is not None:
            try:
                if can_exit:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        guard.wait(CLOSE_TIMEOUT_S)
            finally:
                assert guard.stdin is not None
                with contextlib.suppress(BrokenPipeError):
                    guard.stdin.close()
                guard.wait()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)  # the guard has removed it already, if there was one
            self._folder = None
        if self._output is not None:
            self._output.close()
            self._output = None
