"""The Unix process group of a job, which leaves no process behind.

The ranks of a job, and all processes that they start, form one process group, so one signal reaches all of them. Its
leader is the **guardian**, a shell that only waits for a pipe to be closed. If the launcher ends without a chance to
clean up, as after SIGKILL, the kernel closes the pipe; the guardian then removes the directory of the job and kills
the group, including itself. While the guardian runs, the kernel does not reuse the number of the group.

(``die_with_parent`` cannot replace the guardian: a rank would have to call it between fork and exec, and the
processes that a rank starts do not inherit it. ``spawn()`` forks its ranks itself and can use it.)
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from types import TracebackType

# `read` returns when the pipe is closed. `rm` is repeated because a rank may have created a file during the first.
GUARDIAN = 'read -r _; rm -rf -- "$1" || rm -rf -- "$1"; kill -KILL 0'
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)  # sent to the ranks, not to the guardian
PR_SET_PDEATHSIG = 1


class UnixProcessGroup:
    """A Unix process group. A process joins it when it is started with ``process_group=group.id``."""

    def __init__(self, directory: str) -> None:
        read_end, self._write_end = os.pipe()
        # A child process inherits the signals that are blocked here: the guardian never sees them.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
        try:
            self._guardian = subprocess.Popen(
                ["/bin/sh", "-c", GUARDIAN, "guardian", directory],
                stdin=read_end, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", process_group=0,
            )  # fmt: skip
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(read_end)
        self.id = self._guardian.pid

    def send(self, number: signal.Signals) -> None:
        """Send a signal to every process of the group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.id, number)

    def __enter__(self) -> UnixProcessGroup:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.send(signal.SIGKILL)
        self._guardian.wait()
        os.close(self._write_end)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when process ``parent`` ends for any reason."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:  # it ended before the call above
        os._exit(1)
