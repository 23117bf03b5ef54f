"""Carries the traces of a host from its agent to the launcher, on the standard output of the agent.

A trace is a file for each rank and communicator (unisono.tracing). The agent sends each file as lines of JSON that
begin with ``TRACE``: the name of the file, and a piece of its content, compressed and in base64. The last line of a
file is marked as such. The launcher limits the length of all files together, accepts only names that a rank of the
host may use, and gives each file its final name when the file is complete.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from unisono.launch import messages
from unisono.message import Message

TRACE = b"\x1funisono-trace "
PIECE_BYTES = 1 << 15
MOST_BYTES = 256 * 2**20  # of all files of a host; the reader of traces has the same limit
NAME = re.compile(r"rank-(\d{1,9})\.[\w-]{1,100}\.json")


def send_files(folder: str, ranks: tuple[int, int], write: Callable[[bytes], None]) -> None:
    """Write the traces in a folder as lines; ``ranks`` are the first rank, and the one after the last."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:  # no rank has closed a communicator
        return
    for name in names:
        if not _is_of(name, range(*ranks)):
            continue
        packer = zlib.compressobj()
        with open(os.path.join(folder, name), "rb") as file:
            while data := file.read(PIECE_BYTES):
                if packed := packer.compress(data):
                    write(_line(name, packed, is_last=False))
        write(_line(name, packer.flush(), is_last=True))


def _line(name: str, packed: bytes, *, is_last: bool) -> bytes:
    said = {"name": name, "data": base64.b64encode(packed).decode(), "last": is_last}
    return TRACE + json.dumps(said).encode() + b"\n"


def _is_of(name: str, ranks: range) -> bool:
    match = NAME.fullmatch(name)
    return match is not None and int(match[1]) in ranks


class FileReceiver:
    """Receives the traces of one host."""

    def __init__(self, folder: Path, ranks: range, most_bytes: int = MOST_BYTES) -> None:
        self.folder, self.ranks = folder, ranks
        self.left_bytes = self.most_bytes = most_bytes
        self.name = ""
        self.file: BinaryIO | None = None
        self.unpacker = zlib.decompressobj()
        self.is_refused = False  # after a problem, all further lines are dropped

    def take(self, line: bytes) -> Message | None:
        """Take a line without ``TRACE``; return the problem, if there is one."""
        if self.is_refused:
            return None
        problem = None
        try:
            if not self._take(line):
                problem = messages.TRACE_TOO_LONG(most=self.most_bytes / 2**20)
        except OSError as error:
            problem = messages.BAD_TRACE_LINE(reason=error.strerror)
        except (ValueError, KeyError, TypeError, RecursionError, binascii.Error, zlib.error) as error:
            problem = messages.BAD_TRACE_LINE(reason=error)
        if problem is not None:
            self.is_refused = True
            self.close()
        return problem

    def _take(self, line: bytes) -> bool:
        """Write a piece; return False if the files are too long."""
        said = json.loads(line)
        name, packed, is_last = said["name"], base64.b64decode(said["data"], validate=True), bool(said["last"])
        if self.file is None:
            if not isinstance(name, str) or not _is_of(name, self.ranks):
                raise ValueError(f"name {name!r}")
            self.name, self.unpacker = name, zlib.decompressobj()
            self.file = open(self._unfinished, "xb")  # noqa: SIM115 (closed with its last line)
        if name != self.name:
            raise ValueError(f"name {name!r}")
        data = self.unpacker.decompress(packed, self.left_bytes + 1)
        self.left_bytes -= len(data)
        if self.left_bytes < 0:
            return False
        self.file.write(data)
        if is_last:
            if not self.unpacker.eof:
                raise ValueError("an incomplete file")
            self.file.close()
            self.file = None
            os.replace(self._unfinished, self.folder / self.name)
        return True

    @property
    def _unfinished(self) -> Path:
        return self.folder / f".{self.name}.{os.getpid()}"

    def close(self) -> None:
        """Remove a file that is not complete."""
        if self.file is not None:
            self.file.close()
            self.file = None
            with contextlib.suppress(OSError):
                self._unfinished.unlink()
