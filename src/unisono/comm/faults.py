"""Turns the faults of the engine into exceptions."""

from __future__ import annotations

import os

from unisono.comm import gpu_messages
from unisono.comm.engine_messages import FORKED_CHILD, group_note, sentence_of, value_of
from unisono.errors import (
    Aborted,
    CollectiveTimeout,
    CommError,
    Excluded,
    InternalError,
    MismatchError,
    PeerLost,
    UnisonoError,
    UsageError,
)

__all__ = ["capture_refused", "exception_for", "foreign_memory", "forked_child", "group_note"]  # called by the engine

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
    Excluded,
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


def foreign_memory(address: int, device: int) -> UsageError:
    """Return the exception for memory that is not on the device of the communicator; it is on ``device``, or -1."""
    found = gpu_messages.A_CUDA_DEVICE(device=device) if device >= 0 else gpu_messages.NO_CUDA_DEVICE()
    return UsageError(gpu_messages.FOREIGN_MEMORY(address=f"{address:#x}", found=found))


def capture_refused(transfer: bool) -> UsageError:
    """Return the exception for a call that a CUDA graph cannot capture; ``transfer``: send or recv."""
    return UsageError((gpu_messages.CAPTURED_TRANSFER if transfer else gpu_messages.CAPTURED_IN_STREAM_MODE)())
