"""Threads that wait for calls and complete their futures.

The engine's own threads must not: a callback may wait for further calls, which they would have to make. The calls of
a group end in order, so one thread waits for the first of them; when that is over it leaves the waiting to another
thread and completes the future, whose callbacks may wait for the next call.
"""

from __future__ import annotations

import collections
import os
import queue
import threading
import time
from collections.abc import Callable

IDLE_S = 5.0  # after which a thread without work ends

_jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
_lock = threading.Lock()
_idle = 0
_unfinished = 0  # jobs


def submit(job: Callable[[], None]) -> None:
    """Run it soon, on a thread that is not busy."""
    global _idle, _unfinished
    with _lock:
        _unfinished += 1
        if _idle > 0:
            _idle -= 1
            start = False
        else:
            start = True
    if start:
        threading.Thread(target=_work, args=(job,), name="unisono-future", daemon=True).start()
    else:
        _jobs.put(job)


class InOrder:
    """Calls that end in the order in which they were started, and what is to be done after each."""

    def __init__(self) -> None:
        self._calls: collections.deque[tuple[Callable[[], object], Callable[[], None]]] = collections.deque()
        self._lock = threading.Lock()
        self._waiting = False  # whether a thread waits for the first of them

    def add(self, wait: Callable[[], object], complete: Callable[[], None]) -> None:
        """Have ``complete`` called on some thread when ``wait`` returns, which waits for a call."""
        with self._lock:
            self._calls.append((wait, complete))
            start, self._waiting = not self._waiting, True
        if start:
            submit(self._wait_for_first)

    def _wait_for_first(self) -> None:
        with self._lock:
            wait, complete = self._calls.popleft()
        wait()
        with self._lock:
            self._waiting = bool(self._calls)
            more = self._waiting
        if more:
            submit(self._wait_for_first)
        complete()


def finish_jobs(seconds: float) -> None:
    """Wait until all jobs are done, or the time.

    A thread that is in the middle of torch's code when the interpreter ends takes the process down with it.
    """
    ends = time.monotonic() + seconds
    while _unfinished and time.monotonic() < ends:
        time.sleep(0.001)


def _work(job: Callable[[], None] | None) -> None:
    global _idle, _unfinished
    while job is not None:
        try:
            job()
        finally:
            with _lock:
                _unfinished -= 1
        with _lock:
            _idle += 1
        try:
            job = _jobs.get(timeout=IDLE_S)
        except queue.Empty:
            with _lock:
                if _idle > 0:
                    _idle -= 1  # no job is assigned to this thread
                    return
            job = _jobs.get()  # a job is assigned: it arrives immediately


def _forget_threads() -> None:
    global _jobs, _lock, _idle, _unfinished
    _jobs, _lock, _idle, _unfinished = queue.SimpleQueue(), threading.Lock(), 0, 0


os.register_at_fork(after_in_child=_forget_threads)  # a child has none of them
