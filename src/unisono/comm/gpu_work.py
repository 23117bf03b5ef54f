"""The handle of an asynchronous call on CUDA arrays."""

from __future__ import annotations

from collections.abc import Callable

from unisono import _engine
from unisono.comm import messages
from unisono.comm.work import FOREVER_S
from unisono.errors import CollectiveTimeout, UnisonoError


class GpuWork:
    """The handle of an asynchronous call on CUDA arrays, which ``async_op=True`` returns.

    The call runs on a stream of the communicator. ``wait`` makes the current stream wait for it, and the host goes
    on; ``synchronize`` makes the host wait. For example::

        work = comm.all_reduce(x, async_op=True)
        compute()
        work.wait()  # what is enqueued from now on sees the result
        y = x * 2

    A rank that fails breaks the communicator. The error is raised by ``synchronize``, by ``wait`` if it is known by
    then, and by the next call; ``exception`` returns it.

    A communicator makes it: ``endpoint`` is the engine's part of the communicator, ``event`` the end of the call on
    its stream, ``text`` the call, and ``current_stream`` returns the caller's stream. The communicator keeps the
    arrays alive until the call is over.
    """

    __slots__ = ("__weakref__", "_current_stream", "_endpoint", "_error", "_event", "_over", "_text")

    def __init__(
        self, endpoint: _engine.Endpoint, event: _engine.GpuEvent, text: str, current_stream: Callable[[], int]
    ) -> None:
        self._endpoint = endpoint
        self._event = event
        self._text = text
        self._current_stream = current_stream
        self._over = False  # successful
        self._error: UnisonoError | None = None

    def done(self) -> bool:
        """Return whether the call is over on the GPU, successful or not."""
        if not self._over and self._error is None:
            self._endpoint.check_process()
            try:
                if not self._event.done():
                    return False
                self._endpoint.raise_if_broken()
                self._over = True
            except UnisonoError as error:
                self._error = error
        return True

    def wait(self, timeout: float | None = None) -> None:
        """Make the current stream wait for the call; the host does not wait.

        With ``timeout``, the host waits for up to that many seconds until the call is over, and CollectiveTimeout is
        raised if it is not; the call itself continues. If the communicator is broken, its error is raised.
        """
        if timeout is not None:
            self._wait_on_host(timeout)
        elif not self._over:
            if self._error is not None:
                raise self._error
            self._endpoint.raise_if_broken()
        self._event.wait(self._current_stream())

    def synchronize(self, timeout: float | None = None) -> None:
        """Wait on the host until the call is over; raise its error if it failed.

        After ``timeout`` seconds (default: no limit) CollectiveTimeout is raised; the call itself continues.
        """
        self._wait_on_host(FOREVER_S if timeout is None else timeout)

    def wait_until_done(self, seconds: float) -> bool:
        """Wait on the host until the call is over, or for ``seconds``; return whether it is over."""
        if not self.done():
            try:
                if not self._event.synchronize(seconds):
                    return False
            except UnisonoError as error:
                self._error = error
        return self.done()

    def source_rank(self) -> None:
        """Return None: a receive into a CUDA array names its source."""

    def exception(self) -> UnisonoError | None:
        """Return the error of the call; None if it succeeded or is still running."""
        return self._error if self.done() else None

    def _wait_on_host(self, seconds: float) -> None:
        if not self.wait_until_done(seconds):
            note = self._endpoint.note()
            raise CollectiveTimeout(messages.NOT_FINISHED(call=self._text, seconds=seconds, note=note))
        if self._error is not None:
            raise self._error

    def __repr__(self) -> str:
        return f"<GpuWork: {self._text}, {'done' if self.done() else 'running'}>"
