"""The events of the engine, as they lie in memory (engine/include/unisono/event_log.hpp)."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Events: TypeAlias = NDArray[Any]

EVENT = np.dtype([
    ("begin_ns", "u8"), ("end_ns", "u8"), ("number", "u8"), ("about", "u8"), ("what", "u4"), ("pass", "u4"),
    ("moment", "u4"), ("peer", "u4"),
])  # fmt: skip


class Moment(IntEnum):
    """What an event is about."""

    CALL = 0
    INSTRUCTION = 1
    RESULTS = 2
    AWAITS_MESSAGE = 3
    AWAITS_ROOM = 4
    AWAITS_ENTRY = 5
    SEND = 6
    RECEIVE = 7


IN_BACKGROUND = 1  # said of a call
FAILED = 2


class Tape(NamedTuple):
    """What was read: the events in the order in which they were over, and how many older ones were written over."""

    events: Events
    dropped: int

    @classmethod
    def of(cls, reading: tuple[bytes, int]) -> Tape:
        """Return what the engine has given."""
        return cls(np.frombuffer(reading[0], EVENT), reading[1])
