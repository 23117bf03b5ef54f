"""Which process started the ranks of a job: what all of them have in common where the launcher gives the job no name.

That is not always the parent: `mpiexec -n 2 sh wrapper.sh` puts a shell of its own above each rank.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

# What starts the ranks of MPICH and Intel MPI on a machine. Of an mpiexec that runs inside a rank of another one it
# has the variables of that rank, which may be the very same numbers: so it is known by its name.
LAUNCHERS = ("hydra_pmi_proxy",)


class Process(NamedTuple):
    """What /proc/PID/stat says of a process."""

    pid: int
    name: str
    parent: int
    started: str  # in ticks since the machine was booted: with the pid this names one process for ever


def starter_of(environ: Mapping[str, str], names: tuple[str, ...]) -> str:
    """Return a name for the nearest ancestor that is not of this rank: it was not given the same variables."""
    told = {name: environ.get(name) for name in names}
    pid = os.getppid()
    while True:
        process = _look_at(pid)
        if process is None:  # outside of our namespace of processes, or gone
            return str(pid)
        if process.name in LAUNCHERS or process.parent == 0 or _told_to(pid, names) != told:
            return f"{pid}@{process.started}"
        pid = process.parent


def _look_at(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    # The name is in parentheses and may itself contain some.
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return Process(pid, name, int(fields[1]), fields[19])


def _told_to(pid: int, names: tuple[str, ...]) -> dict[str, str | None] | None:
    """Return the variables that a process was started with, or None if that is not for us to know."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            pairs = file.read().split(b"\0")
    except OSError:
        return None
    found = dict(os.fsdecode(pair).partition("=")[::2] for pair in pairs)
    return {name: found.get(name) for name in names}
