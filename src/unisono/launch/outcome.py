"""How a job has ended, and because of which rank.

When one rank fails, the others fail because of it, and may even end before it. So the rank to name is the one that
the fault log names (fault_log.py), and only without one the first that failed.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from unisono.bootstrap.fault_log import FaultRecord
from unisono.comm.faults import EXCEPTIONS
from unisono.errors import CollectiveTimeout, MismatchError


class Ending(NamedTuple):
    """How a rank has ended."""

    rank: int
    returncode: int  # as in subprocess, -n means that signal n killed it
    was_signalled: bool = False  # by us, to end


@dataclass(frozen=True)
class Outcome:
    """How a job has ended."""

    failed_rank: int | None = None  # the one that the job failed because of
    returncode: int = 0  # of that rank; as in subprocess, -n means that signal n killed it
    ended_by: signal.Signals | None = None  # a signal to us, before any rank failed
    stalled: bool = False  # that rank did not fail: the others timed out while they waited for it
    others_returncode: int = 0  # of the first rank that failed because of that one, where its own says nothing

    @property
    def code(self) -> int:
        """Return the exit code for all: as in a shell, 128 + n stands for signal n."""
        if self.ended_by is not None:
            return 128 + self.ended_by
        returncode = self.others_returncode or self.returncode
        return returncode if returncode >= 0 else 128 - returncode


def outcome_of(
    endings: Sequence[Ending], faults: Sequence[FaultRecord], ended_by: signal.Signals | None = None
) -> Outcome:
    """Return the outcome of a job from how its ranks ended and what they wrote to the fault log, both in order."""
    if ended_by is not None:
        return Outcome(ended_by=ended_by)
    first = next((ending for ending in endings if ending.returncode), None)
    if first is None:
        return Outcome()
    by_rank = {ending.rank: ending for ending in endings}
    # A mismatch is between two ranks, and neither is to fault.
    named = [
        (fault, by_rank[fault.rank]) for fault in faults if fault.rank in by_rank and not _is(fault, MismatchError)
    ]
    for fault, ending in named:
        if ending.returncode and not ending.was_signalled:
            return Outcome(ending.rank, ending.returncode)
        if ending.was_signalled and _is(fault, CollectiveTimeout):
            return Outcome(ending.rank, ending.returncode, stalled=True, others_returncode=first.returncode)
        if not ending.returncode and not _is(fault, CollectiveTimeout):
            return Outcome(ending.rank, 0, others_returncode=first.returncode)
    return Outcome(first.rank, first.returncode)


def _is(fault: FaultRecord, kind: type[Exception]) -> bool:
    return fault.fault < len(EXCEPTIONS) and EXCEPTIONS[fault.fault] is kind
