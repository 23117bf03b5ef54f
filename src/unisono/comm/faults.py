"""What the engine reports, as exceptions."""

from __future__ import annotations

from unisono.errors import Aborted, CollectiveTimeout, CommError, InternalError, MismatchError, PeerLost, UnisonoError

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
    """Return the exception for a fault; ``culprit`` is the rank that it is about, -1 for none."""
    kind = EXCEPTIONS[fault]
    if issubclass(kind, CommError):
        return kind(text, rank=None if culprit < 0 else culprit)
    return kind(text)
