"""A process that has imported torch and makes ranks of itself, by fork: a tenth of a second each, not five.

A rank is otherwise as a program of its own: an exception that nobody catches ends it with a traceback and exit code
1, and at its end the interpreter is taken apart, atexit functions and all. The tests of faults are about that, and
multiprocessing's processes do not do it.

It reads one order a line from its standard input and writes what happens to the standard output, all as JSON.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import gc
import importlib
import json
import os
import resource
import selectors
import signal
import sys
import time
from pathlib import Path
from typing import Any

PR_SET_CHILD_SUBREAPER = 36


class Nursery:
    """Starts ranks, and tells when they end."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.ranks: dict[int, int] = {}  # descriptor of the process: its number

    def serve(self) -> dict[str, Any] | None:
        """Follow orders until there are no more (return None); in a rank, return its order."""
        self.selector.register(0, selectors.EVENT_READ)
        text = b""
        while True:
            for key, _ in self.selector.select():
                if key.fd in self.ranks:
                    self.bury(key.fd)
                    continue
                more = os.read(0, 1 << 16)
                if not more:
                    return self.end()
                *lines, text = (text + more).split(b"\n")
                for line in lines:
                    order = json.loads(line)
                    if "start" in order and self.give_birth():
                        return order["start"]
                    if "left" in order:
                        tell(left=self.strangers())

    def give_birth(self) -> bool:
        """Fork; say whether this is the rank."""
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            die_with(parent)
            self.selector.close()
            for descriptor in self.ranks:
                os.close(descriptor)
            return True
        descriptor = os.pidfd_open(pid)
        self.ranks[descriptor] = pid
        self.selector.register(descriptor, selectors.EVENT_READ)
        tell(started=pid)
        return False

    def bury(self, descriptor: int) -> None:
        """Report a rank that has ended."""
        now = time.monotonic()
        pid = self.ranks.pop(descriptor)
        self.selector.unregister(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(pid, 0)
        tell(ended=pid, code=os.waitstatus_to_exitcode(status), at=now)

    def strangers(self) -> list[int]:
        """Return the processes that ranks have left behind: they have become our children."""
        found = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        left = []
        for pid in set(map(int, found)) - set(self.ranks.values()):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG)[0] == 0:
                    left.append(pid)
        return left

    def end(self) -> None:
        for pid in self.ranks.values():
            os.kill(pid, signal.SIGKILL)


def die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


def tell(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def become_rank(order: dict[str, Any]) -> None:
    """Do what a rank was asked for."""
    output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # that one died of a signal is seen from its exit code
    faulthandler.enable()
    os.environ.update(order["environment"])
    sys.path[:0] = order["path"]
    from fault_ranks import Rank

    rank = Rank(order["rank"], order["size"], Path(order["folder"]))
    function = getattr(importlib.import_module(order["module"]), order["function"])
    rank.run(function, order["args"])


if __name__ == "__main__":
    import torch
    import torch.distributed.checkpoint
    import torch.distributed.fsdp
    import torch.nn.parallel

    import unisono.torch_backend.process_group  # noqa: F401

    torch.set_num_threads(1)
    gc.freeze()  # at a rank's end what was imported need not be looked through: seconds
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where pytest runs in the background
    order = Nursery().serve()
    if order is not None:
        become_rank(order)
