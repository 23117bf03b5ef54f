"""A process that has imported torch and forks ranks, which takes 0.1 s per rank instead of 5 s.

Otherwise a rank behaves like a separate program: an uncaught exception ends it with a traceback and exit code 1, and
the interpreter shuts down completely, including atexit functions. The fault tests depend on this, and the processes
of multiprocessing do not do it.

The server reads one request per line from standard input and writes events to standard output, both as JSON.
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


class ForkServer:
    """Starts ranks, and reports when they exit."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.ranks: dict[int, int] = {}  # pidfd: process ID

    def serve(self) -> dict[str, Any] | None:
        """Serve requests until the input ends (return None); in a forked rank, return its request."""
        self.selector.register(0, selectors.EVENT_READ)
        text = b""
        while True:
            for key, _ in self.selector.select():
                if key.fd in self.ranks:
                    self.report_exit(key.fd)
                    continue
                more = os.read(0, 1 << 16)
                if not more:
                    return self.end()
                *lines, text = (text + more).split(b"\n")
                for line in lines:
                    request = json.loads(line)
                    if "start" in request and self.fork_rank():
                        return request["start"]
                    if "left" in request:
                        report(left=self.orphans())

    def fork_rank(self) -> bool:
        """Fork; tell whether this is the rank."""
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
        report(started=pid)
        return False

    def report_exit(self, descriptor: int) -> None:
        """Report a rank that has exited."""
        now = time.monotonic()
        pid = self.ranks.pop(descriptor)
        self.selector.unregister(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(pid, 0)
        report(ended=pid, code=os.waitstatus_to_exitcode(status), at=now)

    def orphans(self) -> list[int]:
        """Return the processes that ranks have left behind, which this process has adopted."""
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


def report(**event: Any) -> None:
    print(json.dumps(event), flush=True)


def skip_destructors() -> None:
    """Leave out the last part of the exit, after the interpreter's: libtorch unregisters thousands of kernels."""
    libc = ctypes.CDLL(None)
    libc.on_exit(ctypes.cast(libc._exit, ctypes.c_void_p), None)  # _exit gets the exit code


def become_rank(request: dict[str, Any]) -> None:
    """Run the function of a rank."""
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the exit code shows a signal; no core files
    faulthandler.enable()
    if not request["exits_completely"]:
        skip_destructors()
    os.environ.update(request["environment"])
    sys.path[:0] = request["path"]
    from fault_ranks import Rank

    rank = Rank(request["rank"], request["size"], Path(request["folder"]))
    function = getattr(importlib.import_module(request["module"]), request["function"])
    rank.run(function, request["args"])


if __name__ == "__main__":
    import pytest  # noqa: F401 (the modules of tests import it)
    import torch
    import torch._dynamo  # optimizers import it, in seconds: once here rather than in every rank
    import torch.distributed.checkpoint
    import torch.distributed.fsdp
    import torch.nn.parallel

    import unisono.torch_backend.process_group  # noqa: F401

    torch.set_num_threads(1)
    gc.freeze()  # spares every rank seconds of garbage collection of modules when it exits
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore SIGINT in background jobs
    request = ForkServer().serve()
    if request is not None:
        become_rank(request)
