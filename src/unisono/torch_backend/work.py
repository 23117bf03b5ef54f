"""The handles of calls, as torch expects them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

import torch.distributed as dist

from unisono.errors import CollectiveTimeout, CommError
from unisono.message import Message
from unisono.torch_backend import messages
from unisono.torch_backend.future_threads import InOrder
from unisono.torch_backend.futures import CollectiveFuture
from unisono.torch_backend.tensors import Finish, Tensor
from unisono.torch_backend.torch_errors import as_torch_error

NO_LIMIT = timedelta(0)
FOREVER_S = 3e8


class Pending(Protocol):
    """A call that runs in the background; ``unisono.Work`` is one."""

    def done(self) -> bool:
        """Return whether it is over, successful or not."""

    def wait_until_done(self, seconds: float) -> bool:
        """Wait until it is over or the time has passed; return whether it is over."""

    def exception(self) -> Exception | None:
        """Return its error, once it is over."""


class Named(Protocol):
    """A thing with a name: the dispatcher of a group."""

    name: str
    has_raised: bool  # whether a call of the group has failed, and the program knows it


class FinishedWork(dist.Work):
    """The handle of a call that was over when it returned."""

    def __init__(self, result: Sequence[Tensor] = (), key: str = "") -> None:
        super().__init__()
        self._result, self.key = list(result), key

    def wait(self, timeout: timedelta = NO_LIMIT) -> bool:
        """Return at once."""
        return True

    def is_completed(self) -> bool:
        """Return True."""
        return True

    def is_success(self) -> bool:
        """Return True."""
        return True

    def exception(self) -> None:
        """Return None: there is no error."""

    def synchronize(self) -> None:
        """Return at once."""

    def result(self) -> list[Tensor]:
        """Return the tensors of the result."""
        return self._result

    def get_future(self) -> CollectiveFuture:
        """Return a future that is complete."""
        future = CollectiveFuture(self.key)
        future.set_result(self._result)
        return future


class PendingWork(dist.Work):
    """The handle of a call that runs in the background.

    After the engine has finished, something may remain to be done, such as copying results into the user's tensors:
    the thread that first learns that the call is over does it.
    """

    def __init__(
        self, pending: Pending, result: Sequence[Tensor], finish: Finish | None, call: tuple[Named, str],
        number: int | str, order: InOrder | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.pending, self._result, self._finish = pending, list(result), finish
        self._call = call  # its group and its name: the text is needed in errors only
        self._number = number  # of the call in its group, or the key of a call that a callback made
        self.order = order  # the calls of a group, which end one after the other; None: this call is not one of them
        self._lock = threading.Lock()
        self._settled = False
        self._error: Exception | None = None
        self._future: CollectiveFuture | None = None

    @property
    def key(self) -> str:
        """The name by which calls of the future's callbacks are matched between ranks."""
        return self._number if isinstance(self._number, str) else f"{self._call[0].name}#{self._number}"

    @property
    def _text(self) -> Message:
        group, name = self._call
        return messages.CALL_OF_GROUP(call=name, group=group.name)

    def _settle(self) -> None:
        """Do what remains to be done; the call is over."""
        if self._settled:
            return
        with self._lock:
            if self._settled:
                return
            self._error = self.pending.exception()
            if self._error is None and self._finish is not None:
                try:
                    self._finish()
                except Exception as error:
                    self._error = error
            if self._error is not None:
                as_torch_error(self._error)
                self._call[0].has_raised = True
            self._finish = None
            self._settled = True

    def wait(self, timeout: timedelta = NO_LIMIT) -> bool:
        """Wait until the call is over; raise its error if it failed."""
        if not self._settled:
            seconds = timeout.total_seconds() if timeout > NO_LIMIT else FOREVER_S
            if not self.pending.wait_until_done(seconds):
                raise as_torch_error(
                    CollectiveTimeout(messages.NOT_FINISHED(call=self._text, seconds=f"{seconds:g}"))
                )
            self._settle()
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        """Wait."""
        self.wait()

    def is_completed(self) -> bool:
        """Return whether the call is over, successful or not."""
        if not self._settled:
            if not self.pending.done():
                return False
            self._settle()
        return True

    def is_success(self) -> bool:
        """Return whether it is over and succeeded."""
        return self.is_completed() and self._error is None

    def exception(self) -> Exception | None:
        """Return its error; None also while the call runs."""
        return self._error if self.is_completed() else None

    def result(self) -> list[Tensor]:
        """Return the tensors of the result."""
        return self._result

    def source_rank(self) -> int:
        """Return the rank of the sender of a received message."""
        self.wait()
        ask = getattr(self.pending, "source_rank", None)
        found = ask() if ask is not None else None
        if found is None:
            raise as_torch_error(CommError(messages.NO_SOURCE(call=self._text)))
        return int(found)

    _source_rank = source_rank

    def get_future(self) -> CollectiveFuture:
        """Return a future of the result. Most calls need none."""
        with self._lock:
            if self._future is not None:
                return self._future
            future = self._future = CollectiveFuture(self.key)
        if self.is_completed():
            self._complete(future)
        else:
            order = self.order or InOrder()
            order.add(lambda: self.pending.wait_until_done(FOREVER_S), lambda: self._complete(future))
        return future

    def leave_in_child(self, error: Exception) -> None:
        """After a fork, in the child: a call without a result yet is over with this error."""
        self._lock = threading.Lock()
        if not self._settled:
            self._error, self._settled = error, True

    def _complete(self, future: CollectiveFuture) -> None:
        if not self._settled:
            self._settle()
        if self._error is None:
            future.set_result(self._result)
        else:
            future.fail(self._error)


class AllPending:
    """Several calls as one."""

    def __init__(self, parts: Sequence[Pending]) -> None:
        self.parts = parts

    def done(self) -> bool:
        """Return whether all are over."""
        return all(part.done() for part in self.parts)

    def wait_until_done(self, seconds: float) -> bool:
        """Wait until all are over or the time has passed (for each); return whether all are over."""
        return all(part.wait_until_done(seconds) for part in self.parts)

    def exception(self) -> Exception | None:
        """Return the first error."""
        return next((error for part in self.parts if (error := part.exception()) is not None), None)
