"""A call that goes on in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable

from unisono import _engine
from unisono.errors import CollectiveTimeout, UnisonoError

FOREVER_S = 3e8


class Work:
    """What ``async_op=True`` returns.

    The arrays of the call must be left alone until it is done. The engine keeps them alive so long, whether or not
    anybody keeps this object. Where something is left to do when the engine is done (``finish``), it is done by
    whoever learns of that first, from ``done`` or ``wait``.
    """

    def __init__(
        self, endpoint: _engine.Endpoint, completion: _engine.Completion, what: str,
        finish: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self._endpoint = endpoint
        self._completion = completion
        self._what = what
        self._finish = finish
        self._finishing = threading.Lock()

    def done(self) -> bool:
        """Whether the call is over, well or not."""
        return self._endpoint.is_done(self._completion) and self._settled()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the call is over; raise what went wrong with it.

        After ``timeout`` seconds CollectiveTimeout is raised, but the call itself goes on: one can wait again.
        """
        if not self.wait_until_done(FOREVER_S if timeout is None else timeout):
            raise CollectiveTimeout(
                f"{self._what} is not done after {timeout} s; it goes on, wait again or close()"
                f"{self._endpoint.note()}"
            )
        self._completion.raise_fault()

    def wait_until_done(self, seconds: float) -> bool:
        """Wait until the call is over, well or not, or the time; say whether it is."""
        return self._endpoint.wait(self._completion, seconds) and self._settled()

    def source_rank(self) -> int | None:
        """Return the rank that a receive got its message from.

        None while it is not done, if it failed, and for anything but a receive.
        """
        source = self._completion.source()
        return None if source < 0 else source

    def exception(self) -> UnisonoError | None:
        """Return what went wrong, or None; None also while the call goes on."""
        if not self.done():
            return None
        try:
            self._completion.raise_fault()
        except UnisonoError as error:
            return error
        return None

    def _settled(self) -> bool:
        """Do what is left to do; the engine is done."""
        if self._finish is not None:
            self._endpoint.check_process()  # nobody in a forked child would release the lock
            with self._finishing:
                if self._finish is not None and not self._completion.failed():
                    self._finish()
                self._finish = None
        return True

    def __repr__(self) -> str:
        state = "failed" if self._completion.failed() else "done"
        return f"<Work: {self._what}, {state if self._completion.done() else 'running'}>"
