"""The memory layout of the events of the engine (engine/include/unisono/event_log.hpp)."""

from __future__ import annotations

from collections.abc import Callable
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
    """The kind of an event."""

    CALL = 0
    INSTRUCTION = 1
    RESULTS = 2
    AWAITS_MESSAGE = 3
    AWAITS_ROOM = 4
    AWAITS_ENTRY = 5
    SEND = 6
    RECEIVE = 7


IN_BACKGROUND = 1  # a flag of a call
FAILED = 2


class Tape(NamedTuple):
    """Events in the order of their ends, and the number of older events that were overwritten."""

    events: Events
    dropped: int

    @classmethod
    def of(cls, reading: tuple[bytes, int]) -> Tape:
        """Return the events that the engine returned."""
        return cls(np.frombuffer(reading[0], EVENT), reading[1])

    def timed(self, times: Callable[[Any], Any]) -> Tape:
        """Return the events with the times of another clock."""
        events = self.events.copy()
        for name in ("begin_ns", "end_ns"):
            events[name] = times(events[name])
        return self._replace(events=events)
