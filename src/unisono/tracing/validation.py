"""What may stand in a trace: each function returns a value if it is one of these, and raises ValueError if not.

Anybody can write to a file, so nothing in it is taken for granted. Numbers end where a browser counts no further
exactly, as a page shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST = 2**53  # of any number; as nanoseconds, 104 days
LONGEST_NAME = 200  # characters


def number(value: Any) -> int:
    """Return a whole number from 0 on."""
    if type(value) is not int or not 0 <= value < MOST:
        raise ValueError(f"{shortened(value)} in place of a number")
    return value


def name(value: Any) -> str:
    """Return what something is called."""
    if type(value) is not str or len(value) > LONGEST_NAME:
        raise ValueError(f"{shortened(value)} in place of a name")
    return value


def moments(event: Mapping[str, Any]) -> tuple[int, int]:
    """Return when an event began and ended, in nanoseconds."""
    begin, length = (_nanoseconds(event[key]) for key in ("ts", "dur"))
    if length < 0:
        raise ValueError(f"{event['dur']} µs long")
    return begin, begin + length


def shortened(value: Any) -> str:
    """Return how a value is written, or how that begins."""
    try:
        written = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, or lists in lists in lists
        written = f"a large {type(value).__name__}"
    return written if len(written) <= 40 else written[:40] + "..."


def _nanoseconds(microseconds: Any) -> int:
    if type(microseconds) not in (int, float) or not abs(microseconds) < MOST / 1000:  # NaN is not smaller, either
        raise ValueError(f"{shortened(microseconds)} in place of a time in µs")
    nanoseconds: int = round(microseconds * 1000)
    return nanoseconds
