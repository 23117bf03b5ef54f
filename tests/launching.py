"""Jobs as real processes, for the tests of the launcher."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

LIMIT_S = 60.0  # the timeout of a test; on an idle machine, the events that it waits for take milliseconds

# The launcher, with other grace periods.
SCRIPT = """
import sys
from unisono.launch.run import GracePeriods, launch
size, *command = sys.argv[4:]
outcome = launch(command, int(size), grace=GracePeriods(*map(float, sys.argv[1:4])), oversubscribe=True)
print(outcome, file=sys.stderr)
sys.exit(outcome.code)
"""


def words(program: str, size: int, grace_s: tuple[float, float, float]) -> list[str]:
    """Return the command that starts the launcher with a shell program."""
    return [sys.executable, "-c", SCRIPT, *map(str, grace_s), str(size), "sh", "-c", program]


def run_ranks(
    program: str, size: int = 2, *, stdin: bytes = b"", grace_s: tuple[float, float, float] = (0.3, 0.3, 0.3)
) -> subprocess.CompletedProcess[bytes]:
    """Run a shell program on each rank."""
    return subprocess.run(words(program, size, grace_s), input=stdin, capture_output=True, timeout=LIMIT_S)


def lines_of(output: bytes, rank: int) -> list[bytes]:
    """Return the lines of one rank."""
    prefix = b"[%d] " % rank
    return [line.removeprefix(prefix) for line in output.splitlines() if line.startswith(prefix)]


class Job:
    """A running job."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self.process = process
        self.output = output

    def printed(self) -> str:
        """Return the output so far."""
        return self.output.read_text()

    def wait_for(self, text: str, times: int = 1) -> None:
        """Wait until a text was printed a number of times."""
        wait_until(lambda: self.printed().count(text) >= times)

    def pids(self, word: str = "pid") -> list[int]:
        """Return the processes that have printed ``pid 123``."""
        return [int(found) for found in re.findall(rf"\b{word} (\d+)\n", self.printed())]

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the launcher only."""
        self.process.send_signal(number)

    def code(self) -> int:
        """Wait for the launcher; return its exit code."""
        return self.process.wait(LIMIT_S)


@contextmanager
def job(
    folder: Path, program: str, size: int = 2, *, grace_s: tuple[float, float, float] = (0.3, LIMIT_S, 0.3)
) -> Iterator[Job]:
    """Run a shell program on each rank; afterwards, kill all processes that are left."""
    output = folder / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(
            words(program, size, grace_s), stdin=subprocess.DEVNULL, stdout=file, stderr=file, process_group=0,
            env={**os.environ, "TMPDIR": str(folder)},
        )  # fmt: skip
    started = Job(process, output)
    try:
        yield started
    finally:
        process.kill()
        process.wait()
        for pid in started.pids():
            if is_alive(pid):
                os.kill(pid, signal.SIGKILL)


def state_of(pid: int) -> str | None:
    """Return the letter of the state of a process, or None if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_alive(pid: int) -> bool:
    """Return whether a process is running, and not a zombie."""
    return state_of(pid) not in (None, "Z", "X")


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    limit_s = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < limit_s, "timed out"
        time.sleep(0.01)
