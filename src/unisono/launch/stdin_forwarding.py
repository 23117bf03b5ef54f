"""Standard input for rank 0.

Rank 0 inherits a file or a pipe. It cannot inherit a terminal: a process that reads from its terminal is stopped
unless it belongs to the foreground process group, and the ranks form a group in the background. So the launcher reads
what is typed and forwards it.
"""

from __future__ import annotations

import os
import select
from selectors import EVENT_READ, DefaultSelector

MOST_BYTES = select.PIPE_BUF  # a pipe that is ready accepts this many bytes at once
RETRY_S = 0.2


def is_controlling_terminal(descriptor: int) -> bool:
    """Return whether a descriptor is the controlling terminal, which has a foreground and background groups."""
    try:
        return os.tcgetpgrp(descriptor) > 0
    except OSError:
        return False


class TerminalInput:
    """Forwards what is typed on a terminal to rank 0 through a pipe."""

    def __init__(self, terminal: int, selector: DefaultSelector) -> None:
        self._terminal = terminal
        self._selector = selector
        self.read_end, self._write_end = os.pipe()
        self._watched = False
        self._ended = False

    def handed_over(self) -> None:
        """Close the read end here, once rank 0 has it: writing then fails when rank 0 closes its end."""
        os.close(self.read_end)

    def watch(self) -> list[float]:
        """Watch the terminal if the launcher may read it and the pipe has room; if not, return when to try again."""
        if self._watched or self._ended:
            return []
        if not self._may_read():
            return [RETRY_S]
        self._watched = True
        self._selector.register(self._terminal, EVENT_READ, self._forward)
        return []

    def close(self) -> None:
        """Close the pipe, so that rank 0 reads the end of its input."""
        self._pause()
        if not self._ended:
            self._ended = True
            os.close(self._write_end)

    def _may_read(self) -> bool:
        try:
            in_foreground = os.tcgetpgrp(self._terminal) == os.getpgrp()
        except OSError:  # the terminal is gone, or is no longer the controlling one
            return False
        return in_foreground and bool(select.select([], [self._write_end], [], 0)[1])

    def _pause(self) -> None:
        if self._watched:
            self._watched = False
            self._selector.unregister(self._terminal)

    def _forward(self) -> None:
        if not self._may_read():
            self._pause()
            return
        try:
            typed = os.read(self._terminal, MOST_BYTES)
            if typed:
                os.write(self._write_end, typed)
        except OSError:  # the terminal hung up, or rank 0 has closed its input
            typed = b""
        if not typed:
            self.close()
