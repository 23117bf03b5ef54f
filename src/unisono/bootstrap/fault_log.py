"""The fault log of a job: the faults that broke its communicators, in order of time.

``unisono run`` makes the file, and the rank that breaks a communicator appends a line to it
(``Endpoint::break_with``). When the job has ended, the launcher learns from it which rank failed first and which
ranks failed because of that one; the order in which the processes end does not tell.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple

from unisono.bootstrap import messages
from unisono.bootstrap.environment import RankIdentity
from unisono.errors import Aborted

NAME = "faults"
ENDING = "ending"


class FaultRecord(NamedTuple):
    """An entry of the log."""

    fault: int  # see comm/faults.py
    rank: int  # of the job: the one that the fault is about; -1 for none


def make_fault_log(directory: str) -> None:
    """Make an empty log in the directory of a job."""
    os.close(os.open(os.path.join(directory, NAME), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def mark_ending(directory: str) -> None:
    """Note in the directory of a job that a rank has ended well: processes that are to join are no longer needed."""
    with suppress(FileExistsError):
        os.close(os.open(os.path.join(directory, ENDING), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def check_not_ending(directory: str) -> None:
    """Raise Aborted if a rank of the job has ended well."""
    if os.path.exists(os.path.join(directory, ENDING)):
        raise Aborted(messages.JOB_IS_ENDING())


def open_fault_log(identity: RankIdentity) -> int | None:
    """Return a descriptor to append to the log of this job, or None if the launcher does not read one."""
    if identity.launcher != "unisono":
        return None
    with suppress(OSError):  # the log only improves the last line of the launcher
        return os.open(os.path.join(identity.job, NAME), os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    return None


def read_fault_log(directory: str) -> list[FaultRecord]:
    """Return the entries of the log; malformed lines are left out."""
    try:
        with open(os.path.join(directory, NAME), errors="replace") as log:
            lines = [line.split() for line in log]
    except OSError:
        return []
    return [
        FaultRecord(int(words[0]), int(words[1]))
        for words in lines
        if len(words) == 2 and words[0].isdecimal() and words[1].lstrip("-").isdecimal()
    ]
