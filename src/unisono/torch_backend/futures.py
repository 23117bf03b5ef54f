"""Futures of collectives, and the calls that their callbacks make.

*Callback*: a function that a user passes to ``future.then``. It may start further collectives (PowerSGD does), and it
runs on any thread, a different one on every rank. Its calls cannot be matched with those of the other ranks by their
order, as all others are. They have a *key* instead: the call whose callback it is, and the index of the call in the
callback (see side_lane.py).
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from unisono.errors import UsageError
from unisono.torch_backend import messages


class Callback:
    """A callback that is running."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.calls = itertools.count()

    def key_of_next_call(self) -> str:
        """Return the key of the call that is being made."""
        return f"{self.key}.{next(self.calls)}"


class _Running(threading.local):
    callback: Callback | None = None


_running = _Running()


def running_callback() -> Callback | None:
    """Return the callback that this thread runs, or None."""
    return _running.callback


@contextmanager
def _inside(callback: Callback) -> Iterator[None]:
    before, _running.callback = _running.callback, callback
    try:
        yield
    finally:
        _running.callback = before


class Failed:
    """The value of a future whose call failed.

    A future of torch that gets an exception looks like a success to C++. DDP would take the first tensor of
    what is in it, and there is none: the process would end with a segmentation fault. To find tensors it
    pickles what is there; this refuses, with the error. With a hook in Python it takes what is there
    for a tensor, and says what it is instead.
    """

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise self.error

    def __repr__(self) -> str:
        return f"{type(self.error).__name__}: {self.error}"


def _raise(value: Any) -> None:
    if isinstance(value, Failed):
        raise value.error


class CollectiveFuture(torch.futures.Future):
    """The future of a call, or of a callback of one."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key
        self._callbacks = itertools.count()
        self._process = os.getpid()

    def fail(self, error: Exception) -> None:
        """Complete it with an error."""
        self._set_unwrap_func(_raise)
        self.set_result(Failed(error))

    def wait(self) -> Any:
        """Wait for the result; in a forked child no thread would ever complete the future."""
        if not self.done() and self._process != os.getpid():
            raise UsageError(messages.FUTURE_OF_PARENT(child=os.getpid(), parent=self._process))
        return super().wait()

    def then(self, callback: Callable[[Any], Any]) -> CollectiveFuture:
        """Return the future of what the callback returns, which gets this future when it is complete."""
        key = f"{self.key}/{next(self._callbacks)}"
        child = CollectiveFuture(key)

        def run(_: Any) -> None:
            try:
                with _inside(Callback(key)):
                    value = callback(self)
            except Exception as error:
                child.fail(error)
            else:
                child.set_result(value)

        super().add_done_callback(run)
        return child

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Have the callback called with this future when it is complete."""
        key = f"{self.key}/{next(self._callbacks)}"

        def run(_: Any) -> None:
            with _inside(Callback(key)):
                callback(self)

        super().add_done_callback(run)
