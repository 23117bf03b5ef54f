"""Signals to the launcher as events, next to output and the ends of processes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any


class SignalReader:
    """A context in which the given signals are read from a descriptor instead of having their usual effect.

    Signals that are ignored stay ignored (as under nohup). Only the main thread can handle signals: in any other
    thread none are ever read.
    """

    def __init__(self, numbers: Sequence[signal.Signals]) -> None:
        self._numbers = numbers
        self._before: dict[signal.Signals, Any] = {}
        self._read_end, self._write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wakeup_before = -1

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when a signal arrives."""
        return self._read_end

    def read(self) -> list[signal.Signals]:
        """Return the signals that have arrived since the last call."""
        try:
            return [signal.Signals(number) for number in os.read(self._read_end, 4096) if number in self._before]
        except BlockingIOError:
            return []

    def stop_process(self) -> None:
        """Stop this process, as Ctrl-Z does; return when it is continued."""
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, handler)

    def __enter__(self) -> SignalReader:
        if threading.current_thread() is threading.main_thread():
            self._wakeup_before = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
            if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
                # Inherited from the parent process. With it, the exit codes of children would be lost.
                self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number in self._numbers:
                if signal.getsignal(number) != signal.SIG_IGN:
                    # A signal with a Python handler writes its number to the wakeup descriptor.
                    self._before[number] = signal.signal(number, lambda *_: None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if threading.current_thread() is threading.main_thread():
            signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._read_end)
        os.close(self._write_end)
