"""Traces on disk: every rank writes its part by itself; the parts are joined to one file when all are there.

Nobody waits for anybody: a rank that dies leaves no file, and those of the others are whole (a file gets its name
when all of it is written). A file is an object of JSON with an event on each line::

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
from unisono.tracing.chrome import FORMAT

JOINED = "run.json"  # in a folder
PART = "rank-{rank}.{name}.json"
PARTS = "rank-*.json"
BEFORE_EVENTS = '"traceEvents":['


def part_path(folder: Path, header: dict[str, Any]) -> Path:
    """Return where a part belongs: no two of them have the same place, whatever was recorded before."""
    name = f"{header['run']}-{header['number']}"
    return folder / PART.format(rank=header["job_rank"], name=name)


def write_trace(path: Path, headers: Sequence[dict[str, Any]], lines: Iterable[str]) -> None:
    """Write a trace; it is there when it is whole, or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with _new_file(unfinished) as file:
            _write(file, headers, lines)
        os.replace(unfinished, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise UsageError(f"trace: {path} cannot be written: {error.strerror}; name another place") from error


def _new_file(path: Path) -> IO[str]:
    """Open a new file, in a folder that another rank may remove at any time, as long as nothing is in it.

    That rank has joined an earlier run: it removes the folder once, so few attempts are enough.
    """
    for attempts_left in reversed(range(10)):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return open(path, "w", encoding="utf-8")
        except (FileNotFoundError, FileExistsError):  # the second: it was there, and then was no folder
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
    """Return the parts in a folder; of one run, if it is named. Where no folder is (any more), there are none."""
    try:
        names = sorted(fnmatch.filter(os.listdir(folder), PARTS))
    except FileNotFoundError:
        return []
    return [folder / name for name in names if run is None or f".{run}-" in name]


def headers_in(path: Path) -> list[dict[str, Any]]:
    """Return the headers of a file of ours, without reading the events."""
    with open(path, encoding="utf-8") as file:
        first = file.readline()
    parts: list[dict[str, Any]] = json.loads(first + "]}")["otherData"]["unisono"]["parts"]
    return parts


def join(parts: Sequence[Path], path: Path) -> None:
    """Make one trace of several parts, and remove them."""
    write_trace(path, [header for part in parts for header in headers_in(part)], _lines_in(parts))
    for part in parts:
        part.unlink(missing_ok=True)


def _lines_in(parts: Sequence[Path]) -> Iterator[str]:
    for part in parts:
        with open(part, encoding="utf-8") as file:
            next(file)
            for line in file:
                if not line.startswith("]}"):
                    yield line.rstrip("\n").removesuffix(",")


def join_when_all_are_there(folder: Path, run: str, size: int, path: Path) -> bool:
    """Join the parts of a run if this was the last one; whoever finds them all first does it."""
    if len(parts_in(folder, run)) < size:
        return False
    joining = folder / f".{run}"
    try:
        joining.mkdir()  # by one only
    except OSError:  # another one joins them, or has done so and removed the folder
        return False
    parts = parts_in(folder, run)
    complete = len(parts) == size  # else another one was quicker
    if complete:
        join(parts, path)
    joining.rmdir()
    with contextlib.suppress(OSError):  # of another run there may be parts
        folder.rmdir()
    return complete


def clear(folder: Path) -> None:
    """Remove what an earlier run has left in a folder."""
    for path in [folder / JOINED, *parts_in(folder)]:
        path.unlink(missing_ok=True)
