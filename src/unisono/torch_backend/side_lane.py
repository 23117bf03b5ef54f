"""The lane for calls that callbacks make, which are matched by key and not by order (see futures.py).

It has a separate communicator. Rank 0 takes its calls in the order in which they arrive and announces the key of
each; the other ranks wait until they have the call with that key, and then all ranks make it.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable

import numpy as np

from unisono.comm.communicator import Communicator
from unisono.errors import CommError
from unisono.torch_backend import messages

LOOK_EVERY_S = 0.2  # whether the communicator is broken


class LaneCall:
    """A call of a callback."""

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
        """Fail it: it will not be made."""
        self._error = error
        self._over.set()

    def done(self) -> bool:
        """Return whether it is over."""
        return self._over.is_set()

    def wait_until_done(self, seconds: float) -> bool:
        """Wait until it is over or the time has passed; return whether it is over."""
        return self._over.wait(min(seconds, threading.TIMEOUT_MAX))

    def exception(self) -> Exception | None:
        """Return its error."""
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
        """End the thread; calls that still wait fail."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def submit(self, key: str, make: Callable[[], None]) -> LaneCall:
        """Make a call as soon as all ranks have submitted it."""
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
        self._fail_all(CommError(messages.DESTROYED_BEFORE_CALLBACK()))

    def _call_of(self, number: int) -> LaneCall | None:
        """Wait until this rank has the call with that key; return None if it will never have it."""
        with self._changed:
            while number not in self._calls:
                if self._closed or self.comm.broken:
                    return None
                self._changed.wait(LOOK_EVERY_S)
            return self._calls.pop(number)

    def _fail_all(self, error: Exception) -> None:
        with self._changed:
            for call in self._calls.values():
                call.fail(error)
            self._calls.clear()
