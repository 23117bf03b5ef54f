"""Evidence that ranks belong to the same job, for launchers that give the job no unique name.

Ranks that one launcher started share an ancestor process. It is not always the parent: `mpiexec -n 2 sh wrapper.sh`
puts a shell above each rank. ``launcher_of`` finds that ancestor.

Where RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set by hand, nothing identifies the job: two jobs may use the
same port. Ranks of one job usually have the same command, working directory, session and environment, apart from
their rank. These make up the **fingerprint** of a process. It is evidence, not proof: the ranks of one job may have
been started from two terminals.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from typing import NamedTuple

# These variables may differ between the ranks of a job, and so may any variable with RANK in its name.
RANK_SPECIFIC = ("_", "SHLVL", "OLDPWD", "CUDA_VISIBLE_DEVICES")
# The process that starts the ranks of MPICH and Intel MPI on a machine. Inside a rank of another mpiexec it inherits
# the variables of that rank, which may equal those of the ranks it starts; the name of the process tells it apart.
LAUNCHERS = ("hydra_pmi_proxy",)
MOST_DIFFERENCES = 3  # named in an error message


def process_fingerprint(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the fingerprint of this process; values are digests, so that no content of the environment is sent."""
    values = {
        "the command": "\0".join(sys.orig_argv),
        "the working directory": os.getcwd(),
        "the session (terminal)": str(os.getsid(0)),
    }
    for name, value in environ.items():
        if name not in RANK_SPECIFIC and "RANK" not in name:
            values[f"the variable {name}"] = value
    return {name: hashlib.sha256(os.fsencode(value)).hexdigest()[:16] for name, value in values.items()}


def differences(first: Mapping[str, str], second: Mapping[str, str]) -> str:
    """Return the names of the entries in which two fingerprints differ, at most three of them."""
    names = sorted(name for name in {*first, *second} if first.get(name) != second.get(name))
    more = len(names) - MOST_DIFFERENCES
    return ", ".join(names[:MOST_DIFFERENCES]) + (f" and {more} more" if more > 0 else "")


class Process(NamedTuple):
    """A process as described by /proc/PID/stat."""

    pid: int
    name: str
    parent: int
    started: str  # in ticks since boot: together with the pid it identifies a process for ever


def launcher_of(environ: Mapping[str, str], names: tuple[str, ...]) -> str:
    """Return an identifier of the nearest ancestor that does not have the same values of these variables."""
    own_values = {name: environ.get(name) for name in names}
    pid = os.getppid()
    while True:
        process = _read_process(pid)
        if process is None:  # it has ended, or is outside of this PID namespace
            return str(pid)
        if process.name in LAUNCHERS or process.parent == 0 or _initial_values(pid, names) != own_values:
            return f"{pid}@{process.started}"
        pid = process.parent


def _read_process(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    # The name stands in parentheses, and may contain parentheses itself.
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return Process(pid, name, int(fields[1]), fields[19])


def _initial_values(pid: int, names: tuple[str, ...]) -> dict[str, str | None] | None:
    """Return the values of variables that a process was started with, or None if this user may not read them."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            pairs = file.read().split(b"\0")
    except OSError:
        return None
    values = dict(os.fsdecode(pair).partition("=")[::2] for pair in pairs)
    return {name: values.get(name) for name in names}
