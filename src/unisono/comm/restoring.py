"""Restores the array of an all-reduce that has failed (``on_failure="restore"``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unisono.comm import messages
from unisono.comm.work import Work
from unisono.errors import UsageError

RESTORE = "restore"


def call_restoring(array: Any, on_failure: str, call: Callable[[], Any]) -> Any:
    """Make an in-place call, and give ``array`` its contents back if it fails.

    Return what the call returns. If that is a Work, the thread that learns of its failure, from ``done`` or ``wait``,
    restores the array.
    """
    if on_failure != RESTORE:
        raise UsageError(messages.BAD_ON_FAILURE(on_failure=repr(on_failure)))
    if hasattr(array, "__cuda_array_interface__"):
        raise UsageError(messages.RESTORE_ON_GPU())
    saved = array.clone() if hasattr(array, "clone") else getattr(array, "copy", lambda: None)()
    if saved is None:
        return call()  # which refuses what is no array

    def restore() -> None:
        array[...] = saved

    try:
        made = call()
    except BaseException:
        restore()
        raise
    if isinstance(made, Work):
        made.undo_on_failure(restore)
    return made
