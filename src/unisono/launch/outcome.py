"""The outcome of a job: its exit code, and the rank that caused a failure.

When a rank fails, the others fail because of it, and may even end before it. So the rank to name is the one that the
fault log names (fault_log.py), and only without an entry the first that ended with an error.
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
    """The end of a rank."""

    rank: int
    returncode: int  # as in subprocess: -n if signal n killed it
    was_signalled: bool = False  # it ended after the launcher had told the ranks to end


@dataclass(frozen=True)
class Outcome:
    """The outcome of a job."""

    failed_rank: int | None = None  # the rank that caused the failure
    returncode: int = 0  # of that rank, as in subprocess: -n if signal n killed it
    ended_by: signal.Signals | None = None  # a signal to the launcher, before any rank failed
    stalled: bool = False  # that rank did not fail: the others timed out waiting for it
    others_returncode: int = 0  # of the first rank that failed because of that rank, if its own is not an error

    @property
    def code(self) -> int:
        """The exit code of the job; as in a shell, 128 + n stands for signal n."""
        if self.ended_by is not None:
            return 128 + self.ended_by
        returncode = self.others_returncode or self.returncode
        return returncode if returncode >= 0 else 128 - returncode


def outcome_of(
    endings: Sequence[Ending], faults: Sequence[FaultRecord], ended_by: signal.Signals | None = None
) -> Outcome:
    """Return the outcome of a job from the ends of its ranks and its fault log, both in order of time."""
    if ended_by is not None:
        return Outcome(ended_by=ended_by)
    first = next((ending for ending in endings if ending.returncode), None)
    if first is None:
        return Outcome()
    by_rank = {ending.rank: ending for ending in endings}
    for fault in faults:
        ending = by_rank.get(fault.rank)
        if ending is None or _is(fault, MismatchError):  # a mismatch is between two ranks; neither caused it
            continue
        if ending.returncode and not ending.was_signalled:
            return Outcome(ending.rank, ending.returncode)
        if ending.was_signalled and _is(fault, CollectiveTimeout):
            return Outcome(ending.rank, ending.returncode, stalled=True, others_returncode=first.returncode)
        if not ending.returncode and not _is(fault, CollectiveTimeout):
            return Outcome(ending.rank, 0, others_returncode=first.returncode)
    return Outcome(first.rank, first.returncode)


def _is(fault: FaultRecord, kind: type[Exception]) -> bool:
    return fault.fault < len(EXCEPTIONS) and EXCEPTIONS[fault.fault] is kind
