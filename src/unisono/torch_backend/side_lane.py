"""The lane for calls that callbacks make, matched by key and not by order (see futures.py).

It has a communicator of its own. Rank 0 takes the calls as they come to it and announces the key of each; the others
wait until they have the call with that key, too, and then all make it.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable

import numpy as np

from unisono.comm.communicator import Communicator
from unisono.errors import CommError

LOOK_EVERY_S = 0.2  # whether somebody has broken the communicator


class LaneCall:
    """A call that waits for its turn, or is over."""

    def __init__(self, make: Callable[[], None]) -> None:
        self.make = make
        self._over = threading.Event()
        self._error: Exception | None = None

    def run(self) -> None:
        """Make the call."""
        try:
            self.make()
        except Exception as error:
            self._error = error
        self._over.set()

    def fail(self, error: Exception) -> None:
        """Say that it will not be made."""
        self._error = error
        self._over.set()

    def done(self) -> bool:
        """Whether it is over."""
        return self._over.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait until it is over, or the time."""
        return self._over.wait(min(seconds, threading.TIMEOUT_MAX))

    def error(self) -> Exception | None:
        """Return what went wrong."""
        return self._error


class SideLane:
    """The calls of callbacks, on one rank of a group."""

    def __init__(self, comm: Communicator) -> None:
        self.comm = comm
        self._calls: dict[int, LaneCall] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False

    def close(self) -> None:
        """End the thread; calls that are still waiting fail."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def submit(self, key: str, make: Callable[[], None]) -> LaneCall:
        """Make a call as soon as all ranks have it."""
        number = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little", signed=True)
        call = LaneCall(make)
        with self._changed:
            self._calls[number] = call
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="unisono-side-lane", daemon=True)
                self._thread.start()
        return call

    def _work(self) -> None:
        announced = np.zeros(1, np.int64)
        while not self._closed:
            with self._changed:
                self._changed.wait_for(lambda: self._calls or self._closed)
                if self._closed:
                    break
                announced[0] = next(iter(self._calls))
            try:
                self.comm.broadcast(announced)
            except Exception as error:
                self._fail_all(error)
                continue
            call = self._call_of(int(announced[0]))
            if call is not None:
                call.run()
        self._fail_all(CommError("the process group was destroyed before a callback's call was made"))

    def _call_of(self, number: int) -> LaneCall | None:
        """Wait until this rank has the call with that key; None if it is no use to wait."""
        with self._changed:
            while number not in self._calls:
                if self._closed or self.comm.calls.link.endpoint.broken:
                    return None
                self._changed.wait(LOOK_EVERY_S)
            return self._calls.pop(number)

    def _fail_all(self, error: Exception) -> None:
        with self._changed:
            for call in self._calls.values():
                call.fail(error)
            self._calls.clear()
