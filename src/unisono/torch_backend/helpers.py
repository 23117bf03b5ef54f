"""Threads that wait for calls and complete their futures.

The engine's own threads must not: a callback may wait for further calls, which they would have to make. Each
waits for one call at a time, as a callback may wait for the next one; so there are as many as calls with
futures under way.
"""

from __future__ import annotations

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


def run_aside(job: Callable[[], None]) -> None:
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
                    _idle -= 1  # nobody counts on this thread
                    return
            job = _jobs.get()  # somebody does: it comes at once


def _forget_threads() -> None:
    global _jobs, _lock, _idle, _unfinished
    _jobs, _lock, _idle, _unfinished = queue.SimpleQueue(), threading.Lock(), 0, 0


os.register_at_fork(after_in_child=_forget_threads)  # a child has none of them
