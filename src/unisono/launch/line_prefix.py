"""The output of several ranks on one terminal or in one file: whole lines, each with a prefix that names its rank."""

from __future__ import annotations

import os
import re
import select

# Lines that Python prints before the traceback of an exception that ends a process.
TRACEBACK_STARTS = (b"Traceback (most recent call last):", b"Fatal Python error:", b"Exception ignored in")
# The line of a traceback that names its exception.
EXCEPTION = re.compile(rb"^([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit))\b", re.MULTILINE)
# An interrupted import of a C extension raises ImportError instead of KeyboardInterrupt.
INTERRUPTED = (b"KeyboardInterrupt", b"ImportError")


class LineAssembler:
    """Assembles the bytes that a rank writes into whole lines: a rank may write a line in several pieces."""

    def __init__(self) -> None:
        self._incomplete: list[bytes] = []  # the pieces of the last line, which has no end yet

    def take(self, data: bytes) -> bytes:
        """Accept bytes, and return the lines that are complete now."""
        end = data.rfind(b"\n") + 1
        if not end:
            self._incomplete.append(data)
            return b""
        complete = b"".join([*self._incomplete, data[:end]])
        self._incomplete = [data[end:]] if data[end:] else []
        return complete

    def rest(self) -> bytes:
        """Return the last line, with an end, if the rank has ended without writing one."""
        rest, self._incomplete = b"".join(self._incomplete), []
        return rest + b"\n" if rest else b""


class InterruptFilter:
    """Removes the traceback of a KeyboardInterrupt from the standard error of a rank that was interrupted.

    After Ctrl-C every Python rank prints one, which says only that the user pressed Ctrl-C. A traceback is held back
    until the rank has ended, since the exception stands at its end; that of any other error is shown then.
    """

    def __init__(self) -> None:
        self._held: list[bytes] = []

    def take(self, lines: bytes) -> bytes:
        """Accept whole lines, and return those to show now."""
        shown = []
        for line in lines.splitlines(keepends=True):
            if self._held or line.startswith(TRACEBACK_STARTS):
                self._held.append(line)
            else:
                shown.append(line)
        return b"".join(shown)

    def rest(self) -> bytes:
        """Return what was held back, unless it is the traceback of a KeyboardInterrupt."""
        held, self._held = b"".join(self._held), []
        exceptions = EXCEPTION.findall(held)
        return b"" if exceptions and exceptions[-1] in INTERRUPTED else held


def with_prefix(prefix: bytes, lines: bytes) -> bytes:
    """Return whole lines with a prefix before each."""
    return prefix + lines[:-1].replace(b"\n", b"\n" + prefix) + b"\n" if prefix and lines else lines


def write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes, also if the descriptor accepts only a part at a time or is not ready."""
    remaining = memoryview(data)
    while remaining:
        try:
            remaining = remaining[os.write(descriptor, remaining) :]
        except BlockingIOError:  # another process that shares the terminal has made it non-blocking
            select.select([], [descriptor], [])
