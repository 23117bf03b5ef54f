"""Standard input for rank 0.

A file or a pipe is simply inherited. A terminal is not: it stops any process that reads from it and is not of the
group in its foreground, and the ranks are a group of their own. So we read what is typed and pass it on.
"""

from __future__ import annotations

import os
import select
from selectors import EVENT_READ, DefaultSelector

MOST = select.PIPE_BUF  # bytes: what a pipe that is ready takes at once
AGAIN_S = 0.2


def is_controlling_terminal(descriptor: int) -> bool:
    """Return whether this is the terminal that controls us, with a foreground and a background."""
    try:
        return os.tcgetpgrp(descriptor) > 0
    except OSError:
        return False


class TerminalInput:
    """What is typed on a terminal, passed on to rank 0 through a pipe."""

    def __init__(self, terminal: int, selector: DefaultSelector) -> None:
        self._terminal = terminal
        self._selector = selector
        self.for_rank_0, self._ours = os.pipe()
        self._watched = False
        self._ended = False

    def handed_over(self) -> None:
        """Rank 0 has its end of the pipe: when it closes it, we are to notice."""
        os.close(self.for_rank_0)

    def watch(self) -> list[float]:
        """Watch the terminal if it is ours to read from and rank 0 has room; if not, return when to look again."""
        if self._watched or self._ended:
            return []
        if not self._may_read():
            return [AGAIN_S]
        self._watched = True
        self._selector.register(self._terminal, EVENT_READ, self._pass_on)
        return []

    def close(self) -> None:
        """Tell rank 0 that no more will come."""
        self._pause()
        if not self._ended:
            self._ended = True
            os.close(self._ours)

    def _may_read(self) -> bool:
        try:
            ours = os.tcgetpgrp(self._terminal) == os.getpgrp()
        except OSError:  # the terminal is gone, or not the one that controls us
            return False
        return ours and bool(select.select([], [self._ours], [], 0)[1])

    def _pause(self) -> None:
        if self._watched:
            self._watched = False
            self._selector.unregister(self._terminal)

    def _pass_on(self) -> None:
        if not self._may_read():
            self._pause()
            return
        try:
            typed = os.read(self._terminal, MOST)
            if typed:
                os.write(self._ours, typed)
        except OSError:  # the terminal hung up, or rank 0 reads no more
            typed = b""
        if not typed:
            self.close()
