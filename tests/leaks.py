"""Checks that a test leaves nothing behind: no process, descriptor, shared memory or file."""

from __future__ import annotations

import os
import tempfile
import time
from multiprocessing import resource_tracker
from pathlib import Path

import pytest


def children() -> set[int]:
    """Return the processes that were started by this one and still exist."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        text = (task / "children").read_text()
        found |= {int(number) for number in text.split()}
    # Python's resource tracker stays until the interpreter exits.
    return found - {resource_tracker._resource_tracker._pid}


def descriptors() -> set[str]:
    """Return the descriptors that this process has open, except those of Python and pytest themselves."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(entry)
        except OSError:
            continue  # the listing itself
        if "/proc/" not in target and int(entry.name) != resource_tracker._resource_tracker._fd:
            found.add(f"{entry.name} {target}")
    return found


def files() -> set[str]:
    """Return Unisono's files in shared memory and in the temporary directories."""
    places = {Path("/dev/shm"), Path(tempfile.gettempdir()), Path(os.environ.get("XDG_RUNTIME_DIR") or "/dev/shm")}
    return {str(path) for place in places if place.is_dir() for path in place.glob("*unisono*")}


class Leaks:
    """Compares the current state with the state at its creation."""

    def __init__(self) -> None:
        self.before = (children(), descriptors(), files())

    def check(self, patience_s: float = 5.0) -> None:
        """Raise AssertionError if something is left; the kernel may need a moment to clean up."""
        deadline = time.monotonic() + patience_s
        while True:
            left = [now - then for now, then in zip((children(), descriptors(), files()), self.before, strict=True)]
            if not any(left) or time.monotonic() > deadline:
                break
            time.sleep(0.02)
        assert not any(left), f"left behind: processes {left[0]}, descriptors {left[1]}, files {left[2]}"


@pytest.fixture(autouse=True)
def nothing_is_left_behind(monkeypatch):
    """Check every test of a folder whose conftest imports this fixture."""
    with tempfile.TemporaryDirectory(prefix="u-") as own:  # short: the path of a socket has at most 107 characters
        monkeypatch.setenv("TMPDIR", own)
        monkeypatch.setattr(tempfile, "tempdir", own)
        leaks = Leaks()
        yield
        leaks.check()
