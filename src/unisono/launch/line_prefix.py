"""Output of several ranks on one terminal or in one file: whole lines, each with a prefix that says whose it is."""

from __future__ import annotations

import os
import select


class LineAssembler:
    """What one rank writes to one stream, put together to whole lines: a rank may write them in pieces."""

    def __init__(self, prefix: bytes) -> None:
        self.prefix = prefix
        self._begun: list[bytes] = []  # the pieces of a line that has no end yet

    def take(self, data: bytes) -> bytes:
        """Take what was read; return the lines that are whole now."""
        end = data.rfind(b"\n")
        if end < 0:
            self._begun.append(data)
            return b""
        whole = b"".join([*self._begun, data[:end]])
        rest = data[end + 1 :]
        self._begun = [rest] if rest else []
        return self.prefix + whole.replace(b"\n", b"\n" + self.prefix) + b"\n"

    def rest(self) -> bytes:
        """Return the last line if the rank has ended without ending it."""
        begun, self._begun = b"".join(self._begun), []
        return self.prefix + begun + b"\n" if begun else b""


def write_whole(descriptor: int, data: bytes) -> None:
    """Write everything, also where a descriptor takes a part at a time or is not ready."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:  # whoever shares the terminal with us has set it so
            select.select([], [descriptor], [])
