"""The handles that torch gets for its calls."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

import torch.distributed as dist

from unisono import _engine
from unisono.errors import CollectiveTimeout, CommError, UnisonoError
from unisono.torch_backend.future_threads import InOrder
from unisono.torch_backend.futures import CollectiveFuture
from unisono.torch_backend.tensors import Finish, Tensor
from unisono.torch_backend.torch_errors import as_torchs

NO_LIMIT = timedelta(0)
FOREVER_S = 3e8


class Pending(Protocol):
    """A call that goes on."""

    def done(self) -> bool:
        """Whether it is over, well or not."""

    def wait(self, seconds: float) -> bool:
        """Wait until it is over, or the time; say whether it is."""

    def error(self) -> Exception | None:
        """Return what went wrong, once it is over."""


class EngineCall:
    """A call that the engine makes in the background."""

    def __init__(self, endpoint: _engine.Endpoint, completion: _engine.Completion, order: InOrder) -> None:
        self.endpoint, self.completion, self.order = endpoint, completion, order

    def done(self) -> bool:
        """Whether it is over."""
        return self.endpoint.is_done(self.completion)

    def wait(self, seconds: float) -> bool:
        """Wait until it is over, or the time."""
        return self.endpoint.wait(self.completion, seconds)

    def error(self) -> Exception | None:
        """Return what went wrong."""
        if not self.completion.failed():
            return None
        try:
            self.completion.raise_fault()
        except UnisonoError as error:
            return error
        return None


class FinishedWork(dist.Work):
    """Of a call that was over when it returned."""

    def __init__(self, result: Sequence[Tensor] = (), key: str = "") -> None:
        super().__init__()
        self._result, self.key = list(result), key

    def wait(self, timeout: timedelta = NO_LIMIT) -> bool:
        """Return at once."""
        return True

    def is_completed(self) -> bool:
        """It is."""
        return True

    def is_success(self) -> bool:
        """It was."""
        return True

    def exception(self) -> None:
        """There is none."""

    def synchronize(self) -> None:
        """There is nothing to wait for."""

    def result(self) -> list[Tensor]:
        """Return the tensors of the result."""
        return self._result

    def get_future(self) -> CollectiveFuture:
        """Return a future that is complete."""
        future = CollectiveFuture(self.key)
        future.set_result(self._result)
        return future


class PendingWork(dist.Work):
    """Of a call that goes on in the background.

    When the engine is done, something may be left to do, such as copying results to where they were wanted: whoever
    learns of it first does that.
    """

    def __init__(
        self, pending: Pending, result: Sequence[Tensor], finish: Finish | None, what: str, key: str = ""
    ) -> None:
        super().__init__()
        self.pending, self._result, self._finish = pending, list(result), finish
        self._what, self.key = what, key
        self._lock = threading.Lock()
        self._settled = False
        self._error: Exception | None = None
        self._future: CollectiveFuture | None = None

    def _settle(self) -> None:
        """Do what is left to do; the call is over."""
        if self._settled:
            return
        with self._lock:
            if self._settled:
                return
            self._error = self.pending.error()
            if self._error is None and self._finish is not None:
                try:
                    self._finish()
                except Exception as error:
                    self._error = error
            if self._error is not None:
                as_torchs(self._error)
            self._finish = None
            self._settled = True

    def wait(self, timeout: timedelta = NO_LIMIT) -> bool:
        """Wait until the call is over; raise what went wrong with it."""
        if not self._settled:
            seconds = timeout.total_seconds() if timeout > NO_LIMIT else FOREVER_S
            if not self.pending.wait(seconds):
                raise as_torchs(
                    CollectiveTimeout(f"{self._what} is not done after {seconds:g} s; it goes on, wait again")
                )
            self._settle()
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        """Wait."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether the call is over, well or not."""
        if not self._settled:
            if not self.pending.done():
                return False
            self._settle()
        return True

    def is_success(self) -> bool:
        """Whether it is over and went well."""
        return self.is_completed() and self._error is None

    def exception(self) -> Exception | None:
        """Return what went wrong; None also while the call goes on."""
        return self._error if self.is_completed() else None

    def result(self) -> list[Tensor]:
        """Return the tensors of the result."""
        return self._result

    def source_rank(self) -> int:
        """Return who sent what was received."""
        self.wait()
        ask = getattr(self.pending, "source_rank", None)
        found = ask() if ask is not None else None
        if found is None:
            raise as_torchs(CommError(f"{self._what}: only a receive has a source"))
        return int(found)

    _source_rank = source_rank

    def get_future(self) -> CollectiveFuture:
        """Return a future of the result. Most calls are never asked for one."""
        with self._lock:
            if self._future is not None:
                return self._future
            future = self._future = CollectiveFuture(self.key)
        if self.is_completed():
            self._complete(future)
        else:
            order = getattr(self.pending, "order", None) or InOrder()
            order.add(lambda: self.pending.wait(FOREVER_S), lambda: self._complete(future))
        return future

    def leave_in_child(self, error: Exception) -> None:
        """After a fork, in the child: unless its result is already there, the call is over with this error."""
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
        orders = {getattr(part, "order", None) for part in parts}
        self.order = orders.pop() if len(orders) == 1 else None  # calls of one group end in order, so these do, too

    def done(self) -> bool:
        """Whether all are over."""
        return all(part.done() for part in self.parts)

    def wait(self, seconds: float) -> bool:
        """Wait until all are over, or the time (for each)."""
        return all(part.wait(seconds) for part in self.parts)

    def error(self) -> Exception | None:
        """Return the first thing that went wrong."""
        return next((error for part in self.parts if (error := part.error()) is not None), None)
