"""One report for an error that ends several ranks, under every launcher.

A wrong algorithm or a wrong argument usually raises the same error on all ranks, and each of them would print a
traceback. Instead, the first rank that fails becomes the **collector**: it listens on a socket whose name only the
ranks of the job know, waits a moment for the reports of the others, and prints all of them as one text
(error_report.py). The other ranks exit after it has printed, so that a launcher that ends the job on the first exit
does not cut it off.

This is an excepthook, installed by ``connect()``. It handles only errors of Unisono and KeyboardInterrupt that leave
the main module uncaught, and only where the program has not installed another excepthook (docs/adr/0032).
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from contextlib import ExitStack, closing, suppress
from types import TracebackType

from unisono.bootstrap.environment import is_launched_by_unisono
from unisono.bootstrap.error_report import Report, fold, report_of, user_traceback
from unisono.bootstrap.framing import Connection
from unisono.errors import InternalError, UnisonoError

QUIET_S = 0.5  # the collector waits until no report has arrived for this long
LONGEST_S = 5.0  # and no longer than this in all
CHECK_EVERY_S = 0.05  # for ranks that have ended


def install_excepthook(rank: int, processes: list[int], token: str) -> None:
    """Report uncaught errors of this rank together with those of the others.

    ``processes`` are the process numbers of all ranks, and ``token`` is a name that only they know.
    """
    if sys.excepthook is sys.__excepthook__ and threading.current_thread() is threading.main_thread():
        sys.excepthook = UncaughtErrors(rank, processes, token)


class UncaughtErrors:
    """The excepthook of a rank."""

    def __init__(self, rank: int, processes: list[int], token: str) -> None:
        self.rank, self.processes = rank, processes
        self.address = f"\0unisono-errors-{token}"  # \0: an abstract socket, of which no file can be left behind
        self.process = os.getpid()

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        """Report an uncaught exception."""
        ours = isinstance(error, UnisonoError | KeyboardInterrupt) and not isinstance(error, InternalError)
        alone = len(self.processes) == 1
        if os.getpid() != self.process or not ours or (alone and isinstance(error, KeyboardInterrupt)):
            sys.__excepthook__(kind, error, trace)
        elif alone:
            _print(user_traceback(error))
        else:
            with suppress(ValueError):  # in another thread
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process is about to end
            report = report_of(self.rank, error)
            try:
                reported = self._collect(report) or self._send(report) or self._collect(report)
            except OSError:
                reported = False
            if not reported:
                self._show([report])

    def _collect(self, own: Report) -> bool:
        """Collect the reports of all ranks and print them; return False if another rank is the collector."""
        reports = {own.rank: own}
        with ExitStack() as stack:
            listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            try:
                listener.bind(self.address)
            except OSError:
                return False
            listener.listen(len(self.processes))
            listener.settimeout(CHECK_EVERY_S)
            connections = []
            now_s = time.monotonic()
            ends_s, quiet_s = now_s + LONGEST_S, now_s + QUIET_S
            while now_s < min(ends_s, quiet_s) and self._has_silent_ranks(reports):
                with suppress(TimeoutError, OSError, ValueError, TypeError):
                    connection = stack.enter_context(closing(Connection(listener.accept()[0])))
                    if connection.user == os.getuid():
                        message = connection.wait_for_message(time.monotonic() + QUIET_S)
                        report = Report(**(message or {}))
                        reports[report.rank] = report
                        connections.append(connection)
                        quiet_s = time.monotonic() + QUIET_S
                now_s = time.monotonic()
            self._show(list(reports.values()))
            for connection in connections:
                with suppress(OSError):
                    connection.send({})  # it is printed: the rank may exit
        return True

    def _has_silent_ranks(self, reports: dict[int, Report]) -> bool:
        """Return whether a rank that is still running has not reported an error."""
        return any(rank not in reports and _is_running(process) for rank, process in enumerate(self.processes))

    def _send(self, report: Report) -> bool:
        """Send a report to the collector and wait until it is printed; return False if there is no collector."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(self.address)
            connection = Connection(sock)
            if connection.user != os.getuid():
                return False
            connection.send(report._asdict())
            return connection.wait_for_message(time.monotonic() + 2 * LONGEST_S) is not None
        except (OSError, ValueError):  # it has just printed and closed its socket
            return False
        finally:
            sock.close()

    def _show(self, reports: list[Report]) -> None:
        kinds = {report.kind for report in reports}
        # After Ctrl-C, `unisono run` itself prints that the job was interrupted.
        if "error" in kinds or "interrupt" not in kinds or not is_launched_by_unisono():
            _print(fold(reports, len(self.processes)))


def _is_running(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def _print(text: str) -> None:
    """Print to standard error in one piece, so that output of other ranks does not come between."""
    with suppress(OSError, ValueError, AttributeError):  # it is closed, or there is none
        sys.stderr.write(text)
        sys.stderr.flush()
