"""The handle of an asynchronous call."""

from __future__ import annotations

import threading
from collections.abc import Callable

from unisono import _engine
from unisono.comm import messages
from unisono.errors import CollectiveTimeout, UnisonoError

FOREVER_S = 3e8


class Work:
    """The handle of an asynchronous call, which ``async_op=True`` returns.

    Leave the arrays of the call alone until it has finished. The engine keeps them alive until then, whether or not
    the program keeps this object. For example::

        work = comm.all_reduce(x, async_op=True)
        compute()
        work.wait()

    A communicator makes it: ``endpoint`` is the engine's part of the communicator, ``completion`` the engine's record
    of the call, and ``call`` its plan or its text. Where something remains to be done after the engine has finished
    (``finish``), the thread that first learns of it, from ``done`` or ``wait``, does it.
    """

    __slots__ = ("__weakref__", "_call", "_completion", "_endpoint", "_finish", "_finishing", "_undo")

    def __init__(
        self, endpoint: _engine.Endpoint, completion: _engine.Completion, call: _engine.Plan | str,
        finish: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self._endpoint = endpoint
        self._completion = completion
        self._call = call  # its plan, or its text
        self._finish = finish
        self._finishing = None if finish is None else threading.Lock()
        self._undo: Callable[[], None] | None = None

    @property
    def _text(self) -> str:
        return self._call if isinstance(self._call, str) else self._call.text

    def done(self) -> bool:
        """Return whether the call is over, successful or not."""
        return self._endpoint.is_done(self._completion) and self._settled()

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the call is over; raise its error if it failed.

        After ``timeout`` seconds (default: no limit) CollectiveTimeout is raised, but the call itself continues: wait
        again if you like.
        """
        if not self.wait_until_done(FOREVER_S if timeout is None else timeout):
            raise CollectiveTimeout(
                messages.NOT_FINISHED(call=self._text, seconds=timeout, note=self._endpoint.note())
            )
        self._completion.raise_fault()

    def undo_on_failure(self, undo: Callable[[], None]) -> None:
        """Call ``undo`` once when a thread learns that the call has failed; before the program gets this object."""
        self._undo = undo
        self._finishing = self._finishing or threading.Lock()

    def wait_until_done(self, seconds: float) -> bool:
        """Wait until the call is over, or for ``seconds``; return whether it is over, successful or not."""
        return self._endpoint.wait(self._completion, seconds) and self._settled()

    def source_rank(self) -> int | None:
        """Return the rank whose message a receive got.

        None while it is running, if it failed, and for anything but a receive.
        """
        source = self._completion.source()
        return None if source < 0 else source

    def exception(self) -> UnisonoError | None:
        """Return the error of the call; None if it succeeded or is still running."""
        if not self.done():
            return None
        try:
            self._completion.raise_fault()
        except UnisonoError as error:
            return error
        return None

    def _settled(self) -> bool:
        """Do what remains to be done; the engine has finished."""
        if (self._finish is not None or self._undo is not None) and self._finishing is not None:
            self._endpoint.check_process()  # in a forked child no thread would release the lock
            with self._finishing:
                action = self._undo if self._completion.failed() else self._finish
                if action is not None:
                    action()
                self._finish = self._undo = None
        return True

    def __repr__(self) -> str:
        state = "failed" if self._completion.failed() else "done"
        return f"<Work: {self._text}, {state if self._completion.done() else 'running'}>"
