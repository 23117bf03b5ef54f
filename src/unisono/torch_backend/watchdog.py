"""Reports calls that have failed on a GPU while the program does not look.

A call on GPU tensors returns before it runs. If it fails, the next call of the group raises the error, and so do
``wait()`` and ``destroy_process_group()``. Until then a program goes on with wrong results, and one line on stderr
says so.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from typing import Protocol

from unisono.errors import CommError
from unisono.torch_backend import messages

LOOK_EVERY_S = 0.5


class Watched(Protocol):
    """The calls of a group on GPU tensors."""

    def unseen_error(self) -> CommError | None:
        """Return an error that was not raised yet."""


_watched: weakref.WeakSet[Watched] = weakref.WeakSet()
_lock = threading.Lock()
_thread: threading.Thread | None = None


def watch(calls: Watched) -> None:
    """Report the first error of these calls that the program has not seen."""
    global _thread
    with _lock:
        _watched.add(calls)
        if _thread is None:
            _thread = threading.Thread(target=_work, name="unisono-watchdog", daemon=True)
            _thread.start()


def report(watched: list[Watched]) -> list[Watched]:
    """Print the errors that the program has not seen; return the calls that have one."""
    failed = []
    for calls in watched:
        error = calls.unseen_error()
        if error is not None:
            print(messages.FAILED_ON_GPU(error=error), file=sys.stderr, flush=True)
            failed.append(calls)
    return failed


def _work() -> None:
    pause = threading.Event()
    while not pause.wait(LOOK_EVERY_S):
        with _lock:
            watched = list(_watched)
        failed = report(watched)
        with _lock:
            for calls in failed:
                _watched.discard(calls)  # once
        del watched, failed


def _forget() -> None:
    global _lock, _thread
    _lock, _thread = threading.Lock(), None
    _watched.clear()


os.register_at_fork(after_in_child=_forget)  # a child has no such thread
