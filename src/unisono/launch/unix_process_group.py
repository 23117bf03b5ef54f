"""A group of processes of which none is left behind.

The ranks of a job and whatever they start are one process group: one signal reaches all of them. Its leader is the
**guardian**, a shell that does nothing but wait for a pipe to be closed. If we end in a way that leaves us no time,
such as a SIGKILL, the kernel closes the pipe, and the guardian removes the directory of the job and kills the group
with itself. As long as it is there, nobody else can get the number of the group.

(The other way, `PR_SET_PDEATHSIG`, must be asked for by the rank itself between fork and exec, and what a rank starts
does not inherit it.)
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from types import TracebackType

# `read` ends when the pipe is closed. The second `rm`: a rank may have made another file during the first.
GUARDIAN = 'read -r _; rm -rf -- "$1" || rm -rf -- "$1"; kill -KILL 0'
# What we forward to the group is not meant for the guardian.
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)


class ProcessGroup:
    """A process group, to be joined by processes that are started with ``process_group=group.id``."""

    def __init__(self, directory: str) -> None:
        watched, self._ours = os.pipe()
        # What is blocked here is blocked in a process that is started from here, from its first moment on.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
        try:
            self._guardian = subprocess.Popen(
                ["/bin/sh", "-c", GUARDIAN, "guardian", directory],
                stdin=watched, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", process_group=0,
            )  # fmt: skip
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(watched)
        self.id = self._guardian.pid

    def send(self, number: signal.Signals) -> None:
        """Send a signal to all."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.id, number)

    def __enter__(self) -> ProcessGroup:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.send(signal.SIGKILL)
        self._guardian.wait()
        os.close(self._ours)
