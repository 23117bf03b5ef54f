"""Signals to this process as something to wait for, beside output and the ends of processes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any


class SignalReader:
    """While the body runs, these signals can be read here instead of doing what they do otherwise.

    Those that are ignored stay ignored (as under nohup). Only the main thread may say what a signal does: elsewhere
    none ever comes.
    """

    def __init__(self, numbers: Sequence[signal.Signals]) -> None:
        self._numbers = numbers
        self._before: dict[signal.Signals, Any] = {}
        self._ours, self._theirs = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wakeup_before = -1

    def fileno(self) -> int:
        """Return the descriptor that becomes readable with a signal."""
        return self._ours

    def read(self) -> list[signal.Signals]:
        """Return the signals that came since the last time."""
        try:
            return [signal.Signals(number) for number in os.read(self._ours, 4096) if number in self._before]
        except BlockingIOError:
            return []

    def stop_us(self) -> None:
        """Let ourselves be stopped, as Ctrl-Z does; return when we are continued."""
        ours = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, ours)

    def __enter__(self) -> SignalReader:
        if threading.current_thread() is threading.main_thread():
            self._wakeup_before = signal.set_wakeup_fd(self._theirs, warn_on_full_buffer=False)
            if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
                # Inherited from whoever started us: how a child has ended would then be known to nobody.
                self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number in self._numbers:
                if signal.getsignal(number) != signal.SIG_IGN:
                    # The descriptor tells us: a signal that has a handler writes its number there.
                    self._before[number] = signal.signal(number, lambda *_: None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if threading.current_thread() is threading.main_thread():
            signal.set_wakeup_fd(self._wakeup_before)
        os.close(self._ours)
        os.close(self._theirs)
