"""What the engine reports, as exceptions."""

from __future__ import annotations

import os

from unisono.errors import (
    Aborted,
    CollectiveTimeout,
    CommError,
    InternalError,
    MismatchError,
    PeerLost,
    UnisonoError,
    UsageError,
)

# In the order of `enum class Fault` in engine/include/unisono/memory.hpp.
EXCEPTIONS: tuple[type[UnisonoError], ...] = (
    InternalError,  # none: nothing to raise
    PeerLost,
    CollectiveTimeout,
    MismatchError,
    Aborted,
    Aborted,  # interrupted: another rank was; on the rank itself KeyboardInterrupt is raised
    CommError,  # no memory
    InternalError,
)


def exception_for(fault: int, culprit: int, text: str) -> UnisonoError:
    """Return the exception for a fault; ``culprit`` is the rank in the job that it is about, -1 for none."""
    kind = EXCEPTIONS[fault]
    if issubclass(kind, CommError):
        return kind(text, rank=None if culprit < 0 else culprit)
    return kind(text)


def forked_child(rank: str, process: int) -> UsageError:
    """Return the exception for a call in a forked child of a rank."""
    return UsageError(
        f"process {os.getpid()} was forked from {rank} (process {process}) and cannot use its communicators: they "
        "belong to the parent. Start helper processes with the start method 'spawn' or 'forkserver', or make a "
        "communicator of their own with connect()"
    )
