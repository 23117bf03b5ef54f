"""Turns the faults of the engine into exceptions."""

from __future__ import annotations

import os

from unisono.comm.engine_messages import FORKED_CHILD, group_note, sentence_of, value_of
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

__all__ = ["exception_for", "forked_child", "group_note"]  # called by the engine

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
    CommError,  # the CUDA driver
)


def exception_for(fault: int, culprit: int, description: bytes) -> UnisonoError:
    """Return the exception for a fault; ``culprit`` is the rank in the job that it is about, -1 for none."""
    kind, message = EXCEPTIONS[fault], sentence_of(description)
    if issubclass(kind, CommError):
        return kind(message, rank=None if culprit < 0 else culprit)
    return kind(message)


def forked_child(rank: str, process: int) -> UsageError:
    """Return the exception for a call in a forked child of a rank (as the engine writes it) with this process id."""
    return UsageError(FORKED_CHILD(child=os.getpid(), rank=value_of(rank), process=process))
