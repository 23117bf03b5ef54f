"""Timing for the tools that measure."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(action: Callable[[], object]) -> float:
    """Return how long an action takes."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def fastest(action: Callable[[], object], repeats: int) -> float:
    """Return the shortest of several executions, in seconds."""
    return min(seconds(action) for _ in range(repeats))
