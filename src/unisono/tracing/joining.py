"""Joins the parts of a trace into one file, on one clock.

The ranks of one host have one clock, and their parts are joined as they are. The parts of several hosts contain the
offsets of their clocks, as each rank has measured them (alignment.py); the events of a host are aligned with all
offsets that its ranks have measured.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from unisono.errors import UsageError
from unisono.message import listed
from unisono.tracing import messages, validation
from unisono.tracing.alignment import EXACT, Alignment, Offset, offsets_in
from unisono.tracing.chrome import microseconds
from unisono.tracing.clock import NAME
from unisono.tracing.files import headers_in, lines_in, parts_in, write_trace

# The clock of an aligned trace, if no rank with the reference clock has a part.
ABSENT_CLOCK = {"name": NAME, "machine": "that of rank 0", "namespace": ""}


def join(parts: Sequence[Path], path: Path) -> None:
    """Join several parts into one trace, and remove them."""
    write_joined(parts, path)
    for part in parts:
        part.unlink(missing_ok=True)


def join_when_all_are_there(folder: Path, run: str, size: int, path: Path) -> bool:
    """Join the parts of a run if all are present and no other rank is joining them; return whether it did."""
    if len(parts_in(folder, run)) < size:
        return False
    joining = folder / f".{run}"
    try:
        joining.mkdir()  # succeeds on one rank only
    except OSError:  # another rank is joining them, or has joined them and removed the folder
        return False
    parts = parts_in(folder, run)
    complete = len(parts) == size  # otherwise another rank has joined them
    try:
        if complete:
            join(parts, path)
    finally:
        joining.rmdir()
        with contextlib.suppress(OSError):  # the folder may hold parts of another run
            folder.rmdir()
    return complete


def merge_traces(sources: Sequence[Path], path: Path) -> list[dict[str, Any]]:
    """Write the traces of several hosts as one, and return its headers; the sources stay.

    A source is a file, or a folder with a joined trace or with the parts of ranks.
    """
    from unisono.tracing.reading import check_header, files_of  # imported here: ranks only join their own parts

    files = list(dict.fromkeys(file.resolve() for source in sources for file in files_of(source)))
    for file in files:
        check_header(file)
    write_joined(files, path)
    return headers_in(path)


def write_joined(parts: Sequence[Path], path: Path) -> None:
    """Write the events of several files as one trace. UsageError is raised if their clocks cannot be aligned."""
    headers_of = {part: headers_in(part) for part in parts}
    headers = _of_one_run([header for of_part in headers_of.values() for header in of_part])
    if len({(_clock_of(header), header.get("base_ns")) for header in headers}) < 2:
        write_trace(path, headers, lines_in(parts))
        return
    aligner = Aligner(headers)
    lines = (line for part in parts for line in aligner.lines(part, headers_of[part]))
    write_trace(path, [aligner.header(header) for header in headers], lines)


def _of_one_run(headers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return headers that name one run; launchers on several hosts do not know each other's.

    Parts belong to the same run if they have a communicator in common.
    """
    runs: dict[str, str] = {header["run"]: header["run"] for header in headers}
    first: dict[str, str] = {}  # of each communicator

    def root(run: str) -> str:
        while runs[run] != run:
            run = runs[run]
        return run

    for header in headers:
        other = first.setdefault(header.get("communicator", ""), header["run"])
        runs[root(header["run"])] = root(other)
    if len({root(run) for run in runs}) > 1:
        return headers  # the reader refuses them
    return [{**header, "run": root(header["run"])} for header in headers]


def _clock_of(header: Mapping[str, Any]) -> str:
    return json.dumps(header.get("clock"), sort_keys=True)


class Aligner:
    """Aligns the parts of several hosts, and lets all times count from the same moment."""

    def __init__(self, headers: Sequence[dict[str, Any]]) -> None:
        offsets: dict[str, list[Offset]] = {_clock_of(header): [] for header in headers}
        for header in headers:
            try:
                offsets[_clock_of(header)] += offsets_in(header)
            except ValueError as error:
                raise UsageError(messages.BAD_OFFSETS(value=error.args[0])) from error
        self.is_one_clock = len(offsets) == 1
        if self.is_one_clock:  # its offset may matter later, if other hosts are added
            self.alignments = {clock: Alignment(EXACT, EXACT) for clock in offsets}
        else:
            unknown = sorted({header["job_rank"] for header in headers if not offsets[_clock_of(header)]})
            if unknown:
                raise UsageError(messages.CLOCKS_UNKNOWN(ranks=listed(map(str, unknown))))
            self.alignments = {clock: Alignment.through(found) for clock, found in offsets.items()}
        exact = [header["clock"] for header in headers if EXACT in offsets[_clock_of(header)]]
        self.clock = exact[0] if exact else ABSENT_CLOCK
        self.base_ns = min(self.alignments[_clock_of(header)].aligned(header["base_ns"]) for header in headers)

    def header(self, header: dict[str, Any]) -> dict[str, Any]:
        """Return the header of a part, with aligned times and the uncertainty of the alignment."""
        if self.is_one_clock:
            return {**header, "base_ns": self.base_ns}
        alignment = self.alignments[_clock_of(header)]
        began_ns, ended_ns = header["began_ns"], header["ended_ns"]
        said = {
            "clock": header["clock"], "offset_ns": alignment.begin.offset_ns,
            "drift_ns": alignment.end.offset_ns - alignment.begin.offset_ns,
            "uncertainty_ns": alignment.uncertainty_ns(began_ns, ended_ns),
        }  # fmt: skip
        made = {
            **header, "clock": self.clock, "base_ns": self.base_ns, "began_ns": alignment.aligned(began_ns),
            "ended_ns": alignment.aligned(ended_ns), "alignment": said,
        }  # fmt: skip
        made.pop("offsets", None)
        return made

    def lines(self, part: Path, headers: Sequence[dict[str, Any]]) -> Iterator[str]:
        """Yield the events of a file with these headers, with aligned times."""
        of_rank = {header["job_rank"]: (self.alignments[_clock_of(header)], header["base_ns"]) for header in headers}
        for number, line in enumerate(lines_in([part]), 1):
            try:
                event = json.loads(line)
                if "ts" in event:
                    self._align(event, *of_rank[event["pid"]])
            except (KeyError, TypeError, ValueError) as error:
                damage = messages.BAD_EVENT(number=number, error=validation.shortened(error.args[0]))
                raise UsageError(messages.DAMAGED(path=part, damage=damage)) from error
            yield json.dumps(event, separators=(",", ":"), ensure_ascii=False)

    def _align(self, event: dict[str, Any], alignment: Alignment, base_ns: int) -> None:
        moments = validation.moments({"dur": 0, **event})
        begin, end = (alignment.aligned(ns + base_ns) - self.base_ns for ns in moments)
        event["ts"] = microseconds(begin)
        if "dur" in event:
            event["dur"] = microseconds(max(0, end - begin))
