"""Stop a user's code that runs on for ever: a loop that never yields can only be stopped by a signal.

While somebody's code is being watched a timer ticks once a second; after ten ticks inside the same stretch of code it
counts as one that does not end. Entering and leaving such a stretch costs an assignment, so that programs of many
steps are not slowed down.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

from unisono.errors import ScheduleError

TICK_S = 1.0
PATIENCE = 10  # ticks


class Watch:
    """One piece of code that is being watched."""

    def __init__(self, complaint: str) -> None:
        self.complaint = complaint
        self.ticks = 0
        self._inside = True

    @property
    def inside(self) -> bool:
        """Whether the code is running now; going in begins a new stretch."""
        return self._inside

    @inside.setter
    def inside(self, inside: bool) -> None:
        self._inside = inside
        self.ticks = 0


_watches: list[Watch] = []


def _tick(*_: object) -> None:
    for watch in _watches:
        if watch.inside:
            watch.ticks += 1
            if watch.ticks >= PATIENCE:
                raise ScheduleError(
                    f"{watch.complaint} after {PATIENCE * TICK_S:.0f} s", hint="look for a loop that does not end"
                )


@contextlib.contextmanager
def watched(complaint: str) -> Iterator[Watch]:
    """Watch the code in the body. Only the main thread can be stopped by a signal: elsewhere nothing is watched."""
    watch = Watch(complaint)
    if threading.current_thread() is not threading.main_thread():
        yield watch
        return
    if not _watches:
        signal.signal(signal.SIGALRM, _tick)
        signal.setitimer(signal.ITIMER_REAL, TICK_S, TICK_S)
    _watches.append(watch)
    try:
        yield watch
    finally:
        _watches.remove(watch)
        if not _watches:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
