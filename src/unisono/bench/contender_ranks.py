"""A contender made of processes: starts them behind a guard, talks to each rank, notices when one goes wrong."""

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

from unisono.bench.cases import Case
from unisono.bench.contender import CaseUnsupported, Contender, ContenderFailed, Trial, TrialOptions

STANDALONE = Path(__file__).parent / "standalone"
START_TIMEOUT_S = 90.0  # importing torch on a busy machine takes its time
ANSWER_TIMEOUT_S = 60.0
COMPLAINT_S = 5.0
CLOSE_TIMEOUT_S = 10.0
LAST_WORDS = 12  # lines of standard error that are reported
# Variables of somebody else's job, in which we may have been started: a library would take them for its own.
FOREIGN = ("OMPI_", "PMIX_", "PRTE_", "PMI_", "HYDRA_", "MPICH_", "I_MPI_", "UNISONO_", "PYTHONHOME", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Command:
    """One process to be started; it starts others if it is a launcher."""

    argv: list[str]
    environment: Mapping[str, str]


@dataclass
class Rank:
    """The driver's end of the connection to one rank."""

    connection: socket.socket
    received: bytes = b""


class ContenderRanks(Contender):
    """A contender whose ranks are processes that run ``standalone/ranks``."""

    def __init__(self, name: str, size: int, *, answer_timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        self.name = name
        self.size = size
        self.answer_timeout_s = answer_timeout_s
        self.cores: list[list[int]] = []  # that each rank may run on
        self._ranks: dict[int, Rank] = {}
        self._guard: subprocess.Popen[bytes] | None = None
        self._listener: socket.socket | None = None
        self._said: IO[bytes] | None = None
        self._folder: Path | None = None
        self._started = 0.0
        self._failed = False

    @abstractmethod
    def commands(self, folder: Path, ranks: list[str]) -> list[Command]:
        """Return the processes to start, given a private folder, and what follows the name of the interpreter."""

    def rank_environment(self, **more: str) -> dict[str, str]:
        """Return an environment in which ``python -m ranks`` is found."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        return {**ours, "PYTHONPATH": str(STANDALONE), "PYTHONUNBUFFERED": "1", **more}

    def start(self) -> None:
        """Start the guard, which starts the ranks."""
        self._started = time.monotonic()
        # The folder also is where libraries put their temporary files, as the guard removes it in any case.
        self._folder = Path(tempfile.mkdtemp(prefix="unisono-bench-"))
        try:
            address = self._folder / "driver"
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._listener.bind(str(address))
            self._listener.listen(self.size)
            commands = self.commands(self._folder, ["-m", "ranks", self.library, str(address)])
            plan = self._folder / "plan.json"
            temporary = {"TMPDIR": str(self._folder)}
            plan.write_text(json.dumps({
                "folder": str(self._folder),
                "commands": [
                    {"argv": each.argv, "environment": {**each.environment, **temporary}} for each in commands
                ],
            }))  # fmt: skip
            self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close; without a name: nothing to remove)
            self._guard = subprocess.Popen(
                [sys.executable, str(STANDALONE / "guard.py"), str(plan)],
                stdin=subprocess.PIPE, stdout=self._said, stderr=self._said,
                start_new_session=True,  # Ctrl-C in the terminal is for the driver, who then closes us
            )  # fmt: skip
        except BaseException:
            self.close()
            raise

    @property
    @abstractmethod
    def library(self) -> str:
        """Return which of the libraries of ``ranks`` it is."""

    def wait_until_ready(self) -> None:
        """Wait until every rank has connected and said hello."""
        assert self._listener is not None
        assert self._guard is not None
        assert self._guard.stdin is not None
        deadline = self._started + START_TIMEOUT_S
        while len(self._ranks) < self.size:
            self._listener.settimeout(0.2)
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                self._check_alive(f"{len(self._ranks)} of {self.size} ranks had come")
                if time.monotonic() > deadline:
                    raise self._failure(
                        f"only {len(self._ranks)} of {self.size} ranks came within {START_TIMEOUT_S:.0f} s"
                    ) from None
                continue
            newcomer = Rank(connection)
            hello = self._read({-1: newcomer}, deadline)[-1]
            if hello["size"] != self.size or hello["rank"] in self._ranks:
                found = f"rank {hello['rank']} of {hello['size']}"
                raise self._failure(f"{found} came; expected {self.size} ranks that know of each other")
            self._ranks[hello["rank"]] = newcomer
            self.version = hello["version"]
            self.cores.append(hello["cores"])
        with contextlib.suppress(BrokenPipeError):
            self._guard.stdin.write(b"ready\n")
            self._guard.stdin.flush()

    def measure(self, case: Case, options: TrialOptions) -> Trial:
        """Send the command to every rank and gather the answers."""
        line = json.dumps({**case.as_command(), **options.__dict__}).encode() + b"\n"
        for number, rank in self._ranks.items():
            try:
                rank.connection.sendall(line)
            except OSError as error:
                raise self._failure(f"rank {number} is gone ({error})") from error
        answers = self._read(self._ranks, time.monotonic() + self.answer_timeout_s)
        for number, answer in sorted(answers.items()):
            if "unsupported" in answer:
                raise CaseUnsupported(answer["unsupported"])
            if "error" in answer:
                raise CaseUnsupported(f"rank {number}: {answer['error']}")
        return Trial(
            [[each / 1e9 for each in answers[number]["nanoseconds"]] for number in sorted(answers)],
            max(answer["mean_ns"] for answer in answers.values()) / 1e9,
            sum(answer["wrong"] for answer in answers.values()),
        )

    def _read(self, ranks: Mapping[int, Rank], deadline: float) -> dict[int, Any]:
        """Return one line from each of the ranks."""
        found: dict[int, Any] = {}
        with selectors.DefaultSelector() as ready:
            for number, rank in ranks.items():
                ready.register(rank.connection, selectors.EVENT_READ, number)
            while len(found) < len(ranks):
                missing = sorted(set(ranks) - set(found))
                if time.monotonic() > deadline:
                    said = [f"; rank {number}: {answer}" for number, answer in found.items() if "error" in answer]
                    raise self._failure(f"no answer from rank {', '.join(map(str, missing))} in time{''.join(said)}")
                for key, _ in ready.select(timeout=0.5):
                    rank = ranks[key.data]
                    try:
                        got = rank.connection.recv(1 << 20)
                    except OSError:
                        got = b""
                    if not got:
                        raise self._failure("a rank hung up" if key.data < 0 else f"rank {key.data} hung up")
                    rank.received += got
                    if b"\n" in rank.received:
                        line, _, rank.received = rank.received.partition(b"\n")
                        found[key.data] = json.loads(line)
                        ready.unregister(rank.connection)
                        if "error" in found[key.data] or "unsupported" in found[key.data]:
                            # The others should say the same at once, or are waiting for this one in vain.
                            deadline = min(deadline, time.monotonic() + COMPLAINT_S)
        return found

    def _check_alive(self, where: str) -> None:
        assert self._guard is not None
        if self._guard.poll() is not None:
            raise self._failure(f"it ended with code {self._guard.returncode} when {where}")

    def _failure(self, what: str) -> ContenderFailed:
        """Return the error, with the last words of the processes; give them a moment to say them."""
        self._failed = True
        time.sleep(0.3)
        words = []
        if self._said is not None:
            self._said.seek(0)
            words = [line for line in self._said.read().decode(errors="replace").splitlines() if line.strip()]
        return ContenderFailed("\n  ".join([what, *words[-LAST_WORDS:]]))

    def hang_up(self) -> None:
        """Tell the ranks to end."""
        for rank in self._ranks.values():
            rank.connection.close()
        self._ranks = {}
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def close(self) -> None:
        """End all ranks: by themselves if they can, else by the guard."""
        can_end_by_itself = bool(self._ranks) and not self._failed
        self.hang_up()
        guard, self._guard = self._guard, None
        if guard is not None:
            try:
                if can_end_by_itself:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        guard.wait(CLOSE_TIMEOUT_S)
            finally:
                assert guard.stdin is not None
                with contextlib.suppress(BrokenPipeError):
                    guard.stdin.close()
                guard.wait()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)  # the guard has done so, if there was one
            self._folder = None
        if self._said is not None:
            self._said.close()
            self._said = None
