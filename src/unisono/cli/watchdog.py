"""Stops code of a user that runs forever; only a signal can stop a loop that never yields.

While code is watched, a timer ticks once a second; ten ticks without a pause mean that the code does not end. Pausing
and resuming the watch costs one assignment, so that programs of many steps are not slowed down. Windows has no such
timer: there, only Ctrl-C stops the code.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

from unisono.cli import messages
from unisono.errors import ScheduleError

TICK_S = 1.0
LIMIT = 10  # ticks


class Watch:
    """A piece of code that is being watched."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.ticks = 0
        self._inside = True

    @property
    def inside(self) -> bool:
        """Return whether the code is running; setting it restarts the count."""
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
            if watch.ticks >= LIMIT:
                raise ScheduleError(
                    messages.RUNS_ON(what=watch.problem, seconds=f"{LIMIT * TICK_S:.0f}"),
                    hint=messages.ENDLESS_LOOP(),
                )


@contextlib.contextmanager
def watched(problem: str) -> Iterator[Watch]:
    """Watch the code in the body. A signal can stop only the main thread: other threads are not watched."""
    watch = Watch(problem)
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
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
