"""Writes traces to disk: every rank writes its part independently; joining.py joins the parts.

No rank waits for another: a rank that dies leaves no file, and the files of the others are complete (a file gets its
name after it is written). A file is a JSON object with one event on each line::

    {"displayTimeUnit":"ns","otherData":{"unisono":{"format":1,"parts":[{...}]}},"traceEvents":[
    {"ph":"X",...},
    {"ph":"X",...}
    ]}
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from unisono.errors import UsageError
from unisono.tracing import messages
from unisono.tracing.chrome import FORMAT

JOINED = "run.json"  # in a folder
PART = "rank-{rank}.{name}.json"
PARTS = "rank-*.json"
BEFORE_EVENTS = '"traceEvents":['


def part_path(folder: Path, header: dict[str, Any]) -> Path:
    """Return the path of a part, which differs from that of every other part, earlier ones included."""
    name = f"{header['run']}-{header['number']}"
    return folder / PART.format(rank=header["job_rank"], name=name)


def write_trace(path: Path, headers: Sequence[dict[str, Any]], lines: Iterable[str]) -> None:
    """Write a trace atomically: the file is complete or does not exist."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with _new_file(unfinished) as file:
            _write(file, headers, lines)
        os.replace(unfinished, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise UsageError(messages.NOT_WRITABLE(path=path, reason=error.strerror)) from error


def _new_file(path: Path) -> IO[str]:
    """Open a new file in a folder that another rank may remove while it is empty.

    That rank has joined the parts of an earlier run. It removes the folder once, so a few attempts are enough.
    """
    for attempts_left in reversed(range(10)):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return open(path, "w", encoding="utf-8")
        except (FileNotFoundError, FileExistsError):  # FileExistsError: the folder disappeared during mkdir
            if not attempts_left:
                raise
    raise AssertionError("the last attempt returns or raises")


def _write(file: IO[str], headers: Sequence[dict[str, Any]], lines: Iterable[str]) -> None:
    about = json.dumps({"unisono": {"format": FORMAT, "parts": list(headers)}}, separators=(",", ":"))
    file.write(f'{{"displayTimeUnit":"ns","otherData":{about},{BEFORE_EVENTS}')
    separator = "\n"
    for line in lines:
        file.write(separator + line)
        separator = ",\n"
    file.write("\n]}\n")


def parts_in(folder: Path, run: str | None = None) -> list[Path]:
    """Return the parts in a folder, of one run if it is given; a folder that does not exist has none."""
    try:
        names = sorted(fnmatch.filter(os.listdir(folder), PARTS))
    except FileNotFoundError:
        return []
    return [folder / name for name in names if run is None or f".{run}-" in name]


def headers_in(path: Path) -> list[dict[str, Any]]:
    """Return the headers of a file that Unisono wrote, without reading its events."""
    with open(path, encoding="utf-8") as file:
        first = file.readline()
    parts: list[dict[str, Any]] = json.loads(first + "]}")["otherData"]["unisono"]["parts"]
    return parts


def lines_in(parts: Sequence[Path]) -> Iterator[str]:
    """Yield the events of files that Unisono wrote, as lines."""
    for part in parts:
        with open(part, encoding="utf-8") as file:
            next(file)
            for line in file:
                if not line.startswith("]}"):
                    yield line.rstrip("\n").removesuffix(",")


def clear(folder: Path) -> None:
    """Remove the files of an earlier run from a folder."""
    for path in [folder / JOINED, *parts_in(folder)]:
        path.unlink(missing_ok=True)
