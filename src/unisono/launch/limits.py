"""The largest number of ranks that the launcher starts without being told to."""

from __future__ import annotations

import os

from unisono.errors import UsageError
from unisono.launch import messages

# More than this is a slip of the keyboard: 100,000 processes would make the machine unusable for minutes.
RANKS_PER_CORE = 64


def most_ranks() -> int:
    """Return the largest number of ranks on this machine."""
    return RANKS_PER_CORE * len(os.sched_getaffinity(0))


def check_size(size: object, *, oversubscribe: bool, override: str) -> None:
    """Raise UsageError unless ``size`` ranks can be started; ``override`` is the option that lifts the limit."""
    if type(size) is not int or size < 1:
        raise UsageError(messages.NO_RANKS(size=repr(size)))
    if size > most_ranks() and not oversubscribe:
        raise UsageError(
            messages.TOO_MANY_RANKS(
                size=size, cores=len(os.sched_getaffinity(0)), limit=most_ranks(), per_core=RANKS_PER_CORE,
                override=override,
            )
        )  # fmt: skip
