"""Jobs as real processes, for the tests of the launcher: started, looked at, and gone in the end."""

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

LIMIT_S = 60.0  # until a test gives up; what it waits for takes milliseconds, on a machine that is not busy

# The launcher with less patience than its users have.
SCRIPT = """
import sys
from unisono.launch.run import GracePeriods, launch
size, *command = sys.argv[4:]
outcome = launch(command, int(size), grace=GracePeriods(*map(float, sys.argv[1:4])), oversubscribe=True)
print(outcome, file=sys.stderr)
sys.exit(outcome.code)
"""


def words(program: str, size: int, patience_s: tuple[float, float, float]) -> list[str]:
    """Return what starts the launcher with a program in the language of the shell."""
    return [sys.executable, "-c", SCRIPT, *map(str, patience_s), str(size), "sh", "-c", program]


def run_ranks(
    program: str, size: int = 2, *, stdin: bytes = b"", patience_s: tuple[float, float, float] = (0.3, 0.3, 0.3)
) -> subprocess.CompletedProcess[bytes]:
    """Run a program in the language of the shell on each rank."""
    return subprocess.run(words(program, size, patience_s), input=stdin, capture_output=True, timeout=LIMIT_S)


def lines_of(output: bytes, rank: int) -> list[bytes]:
    """Return what one rank has written."""
    prefix = b"[%d] " % rank
    return [line.removeprefix(prefix) for line in output.splitlines() if line.startswith(prefix)]


class Job:
    """A job that runs while the test does something to it."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self.process = process
        self.output = output

    def printed(self) -> str:
        """Return what was printed so far."""
        return self.output.read_text()

    def wait_for(self, text: str, times: int = 1) -> None:
        """Wait until a text was printed so many times."""
        wait_until(lambda: self.printed().count(text) >= times)

    def pids(self, word: str = "pid") -> list[int]:
        """Return the processes that have introduced themselves by ``pid 123``."""
        return [int(found) for found in re.findall(rf"\b{word} (\d+)\n", self.printed())]

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the launcher, and to nobody else."""
        self.process.send_signal(number)

    def code(self) -> int:
        """Wait for the launcher; return its exit code."""
        return self.process.wait(LIMIT_S)


@contextmanager
def job(
    folder: Path, program: str, size: int = 2, *, patience_s: tuple[float, float, float] = (0.3, LIMIT_S, 0.3)
) -> Iterator[Job]:
    """Run a program in the language of the shell on each rank; kill what is left in the end."""
    output = folder / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(
            words(program, size, patience_s), stdin=subprocess.DEVNULL, stdout=file, stderr=file, process_group=0,
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
    """Return the letter of a process's state, or None where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_alive(pid: int) -> bool:
    """Return whether a process is there, and is more than an entry in a table."""
    return state_of(pid) not in (None, "Z", "X")


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    limit_s = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < limit_s, "waited in vain"
        time.sleep(0.01)
