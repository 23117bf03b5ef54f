"""Linux namespaces, as in containers (only root can create them)."""

from __future__ import annotations

import ctypes
import os

import pytest

NEW_NETWORK, NEW_PROCESSES = 0x40000000, 0x20000000


def enter_new(kind: int) -> None:
    """Move this process into a new namespace; for a PID namespace, its next child."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(kind) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def _can_make_namespaces() -> bool:
    child = os.fork()
    if child == 0:
        try:
            enter_new(NEW_NETWORK | NEW_PROCESSES)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


needs_namespaces = pytest.mark.skipif(
    not _can_make_namespaces(), reason="SKIPPED, NOT TESTED: ranks in several containers (needs root)"
)
