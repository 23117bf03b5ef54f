"""Start the processes of a contender and clean up after them: ``python guard.py COMMANDS.json``.

The driver starts one guard for each contender and holds the other end of the guard's standard input. When that
closes, because the driver closed it, was interrupted, or was killed, the guard ends every process of the contender
and removes its folder and its files in shared memory. The guard exits by itself when the processes have ended.

It is a *subreaper*: processes whose parents have died become its children and not those of init, so that it finds all
of them, including those that libraries start through daemons.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 2.0  # between SIGTERM and SIGKILL
TICK_MS = 100


def descendants() -> set[int]:
    """Return all processes that this one has started, directly or indirectly."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            try:
                stat = Path("/proc", entry, "stat").read_text(errors="replace")
            except OSError:
                continue  # it has just ended
            state, parent = stat.rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(entry))
    found: set[int] = set()
    new = {os.getpid()}
    while new:
        new = {child for parent in new for child in children.get(parent, [])} - found
        found |= new
    return found


def shared_files(pids: set[int]) -> set[Path]:
    """Return the files in shared memory that these processes have mapped: a killed library leaves them behind."""
    found = set()
    for pid in pids:
        try:
            mapped = Path(f"/proc/{pid}/maps").read_text(errors="replace")
        except OSError:
            continue
        for line in mapped.splitlines():
            path = line.partition("/")[2]
            if path.startswith("dev/shm/") and not path.endswith("(deleted)"):
                found.add(Path("/" + path))
    return found


class Guard:
    """The processes of one contender."""

    def __init__(self, settings: dict[str, object]) -> None:
        self.folder = Path(str(settings["folder"]))
        self.older = set(SHARED_MEMORY.glob("*"))  # these belong to other programs
        self.left: set[Path] = set()
        self.processes: list[subprocess.Popen[bytes]] = []
        commands = settings["commands"]
        assert isinstance(commands, list)
        self.commands: list[dict[str, object]] = commands

    def start(self) -> None:
        """Start all processes."""
        for command in self.commands:
            argv, environment = command["argv"], command["environment"]
            assert isinstance(argv, list)
            assert isinstance(environment, dict)
            self.processes.append(
                subprocess.Popen(argv, env=environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=sys.stderr)
            )

    def watch(self) -> int:
        """Wait until the processes have ended, one of them has failed, or the driver is gone."""
        driver = select.poll()
        driver.register(sys.stdin, select.POLLIN)
        while True:
            codes = [process.poll() for process in self.processes]
            failed = [code for code in codes if code]
            if failed or None not in codes:
                return failed[0] if failed else 0
            if driver.poll(TICK_MS):
                if not os.read(sys.stdin.fileno(), 1024):
                    return 0
                # The driver reports that all ranks are connected: their shared memory is visible now.
                self.left |= shared_files(descendants())

    def end(self) -> None:
        """End the remaining processes: first with SIGTERM, then with SIGKILL."""
        deadline = time.monotonic() + GRACE_S
        alive = descendants()
        self.left |= shared_files(alive)
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        while alive and time.monotonic() < deadline:
            self.reap()
            time.sleep(0.02)
            alive = descendants()
        while alive:
            self.left |= shared_files(alive)
            for pid in alive:
                with contextlib.suppress(ProcessLookupError):  # it has already ended
                    os.kill(pid, signal.SIGKILL)
            self.reap()
            time.sleep(0.01)
            alive = descendants()
        for path in self.left - self.older:
            path.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def reap(self) -> None:
        """Reap the processes that have ended."""
        with contextlib.suppress(ChildProcessError):  # there are none
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def main() -> int:
    """Start the processes, watch them, and end them."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    guard = Guard(json.loads(Path(sys.argv[1]).read_text()))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    code = 1
    try:
        guard.start()
        code = guard.watch()
    finally:
        guard.end()
    return code if 0 <= code < 128 else 1


if __name__ == "__main__":
    sys.exit(main())
