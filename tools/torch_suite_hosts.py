"""Places the ranks of PyTorch's tests on test hosts (tools/test_hosts.py).

A rank is forked from the process of its test, and then moves to the network and the host name of its test host. It
keeps the files and the process numbers of this machine, which torch's tests use to exchange results. For Unisono,
ranks in different networks are on different hosts, and share no memory.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from test_hosts import TestHosts

CLONE_NEWUTS, CLONE_NEWNET = 0x04000000, 0x40000000

Place = Callable[[int, int], None]  # moves this process, the given rank of a number of ranks, to its host


def stay(rank: int, size: int) -> None:
    """Leave a rank where it is."""


@contextmanager
def on_hosts(count: int) -> Iterator[Place]:
    """Create test hosts; yield a function that moves a rank to its host (with ``count`` below 2, it does nothing)."""
    if count < 2:
        yield stay
        return
    with TestHosts(count) as hosts:
        processes = [host.namespaces.process for host in hosts.hosts]
        yield lambda rank, size: move(processes[host_of(rank, size, count)])


def host_of(rank: int, size: int, count: int) -> int:
    """Return the host of a rank: consecutive ranks share a host."""
    return rank * count // size


def move(process: int, names: Sequence[str] = ("net", "uts")) -> None:
    """Move this process, which must have a single thread, to the namespaces of another one."""
    kinds = {"net": CLONE_NEWNET, "uts": CLONE_NEWUTS}
    enter = ctypes.CDLL(None, use_errno=True).setns
    for name in names:
        with open(f"/proc/{process}/ns/{name}") as file:
            if enter(file.fileno(), kinds[name]) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), file.name)
