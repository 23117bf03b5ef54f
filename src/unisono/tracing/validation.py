"""Checks values of a trace: each function returns the value if it is valid, and raises ValueError otherwise.

A trace is a file that anyone may have edited, so every value is checked. Numbers are limited to the integers that a
browser represents exactly, because a page shows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.tracing import messages

MOST = 2**53  # of any number; as nanoseconds, 104 days
LONGEST_NAME = 200  # characters


def number(value: Any) -> int:
    """Return a non-negative integer."""
    if type(value) is not int or not 0 <= value < MOST:
        raise ValueError(messages.NOT_A_NUMBER(value=shortened(value)))
    return value


def name(value: Any) -> str:
    """Return a name."""
    if type(value) is not str or len(value) > LONGEST_NAME:
        raise ValueError(messages.NOT_A_NAME(value=shortened(value)))
    return value


def moments(event: Mapping[str, Any]) -> tuple[int, int]:
    """Return the begin and the end of an event, in nanoseconds."""
    begin, length = (_nanoseconds(event[key]) for key in ("ts", "dur"))
    if length < 0:
        raise ValueError(messages.NEGATIVE_LENGTH(value=event["dur"]))
    return begin, begin + length


def shortened(value: Any) -> str:
    """Return the repr of a value, cut off if it is long."""
    try:
        written = repr(value)
    except (ValueError, RecursionError):  # a number with thousands of digits, or deeply nested lists
        written = f"a large {type(value).__name__}"
    return written if len(written) <= 40 else written[:40] + "..."


def _nanoseconds(microseconds: Any) -> int:
    if type(microseconds) not in (int, float) or not abs(microseconds) < MOST / 1000:  # which is also true for NaN
        raise ValueError(messages.NOT_A_TIME(value=shortened(microseconds)))
    nanoseconds: int = round(microseconds * 1000)
    return nanoseconds
