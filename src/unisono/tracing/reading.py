"""Reads a trace, and checks that it is one: ours, whole, of one run and one clock."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, cast

from unisono.errors import UsageError
from unisono.tracing import validation
from unisono.tracing.assembling import Assembly
from unisono.tracing.chrome import FORMAT, LANES
from unisono.tracing.files import BEFORE_EVENTS, JOINED, parts_in
from unisono.tracing.run import Run, TracedCommunicator

MOST_BYTES = 256 * 2**20
MOST_RANKS = 1024  # of a communicator
HEADER = {
    "run": str, "communicator": str, "number": int, "rank": int, "size": int, "job_rank": int, "clock": dict,
    "base_ns": int, "dropped": int, "schedules": dict,
}  # fmt: skip


def read_run(path: str | PathLike[str], *, missing_ok: bool = False, most_bytes: int = MOST_BYTES) -> Run:
    """Read a trace: a file, or the folder of ``unisono run --trace``. Raise UsageError if it makes no sense.

    With ``missing_ok``, some ranks may have left none: as when one was killed, and one wants to know what the others
    did. ``most_bytes``: larger traces are refused.
    """
    where = Path(path)
    try:
        files = _files(where)
        size = sum(file.stat().st_size for file in files)
    except OSError as error:
        _unreadable(where, error)
    if size > most_bytes:
        raise UsageError(
            f"{where}: a trace of {size / 2**20:.0f} MiB; expected {most_bytes / 2**20:.0f} MiB or less. Record only "
            'the part of the run that you want to see (with comm.trace("run.json"):), or fewer events '
            "(comm.trace(..., events=10_000)). Perfetto opens larger files than this"
        )
    assemblies: dict[tuple[int, int], Assembly] = {}
    headers: list[dict[str, Any]] = []
    for file in files:
        _read_file(file, headers, assemblies)
    _check_one_run(where, headers)
    groups = _groups(where, headers, assemblies)
    if not missing_ok:
        for group in groups:
            if group.missing:
                raise UsageError(
                    f"{where}: no trace of rank {', '.join(map(str, group.missing))} of {group.size}; expected those "
                    "of all ranks. A rank that was killed leaves none. To see what the others did: "
                    "read_run(..., missing_ok=True)"
                )
    schedules = {digest: text for header in headers for digest, text in header["schedules"].items()}
    return Run(str(where), groups, headers[0]["clock"], schedules)


def _files(where: Path) -> list[Path]:
    if where.is_file():
        return [where]
    if where.exists() and not where.is_dir():
        _refuse_special(where)
    if not where.is_dir():
        raise UsageError(f"there is no file or folder {str(where)!r}; expected a trace (unisono run --trace DIR ...)")
    try:
        parts = parts_in(where)
    except OSError as error:
        _unreadable(where, error)
    if not (where / JOINED).exists():
        if parts:
            return parts
        others = sorted(where.glob("*.json"))
        if len(others) == 1:
            return others
        hint = f"; name one of them: {', '.join(other.name for other in others[:5])}" if others else ""
        hint = hint or ". To make one: unisono run -n 4 --trace DIR script.py"
        raise UsageError(f"{where}: there is no trace in this folder ({JOINED}, or the files of the ranks){hint}")
    files = [where / JOINED, *parts]
    for file in files:
        if not file.is_file():
            _refuse_special(file)
    return files


def _refuse_special(file: Path) -> NoReturn:
    raise UsageError(
        f"{file}: a folder, a pipe or a device; expected a file with a trace (unisono run --trace DIR ...)"
    )


def _unreadable(file: Path, error: OSError) -> NoReturn:
    raise UsageError(f"{file}: cannot be read: {error.strerror}; expected a trace that you may read") from error


# ---- one file ----------------------------------------------------------------------------------------------------


def _read_file(file: Path, headers: list[dict[str, Any]], assemblies: dict[tuple[int, int], Assembly]) -> None:
    try:
        with open(file, encoding="utf-8") as lines:
            first = lines.readline()
            if first.startswith("{") and first.rstrip().endswith(BEFORE_EVENTS):
                about, events = json.loads(first + "]}"), _events_by_line(file, lines)
            else:  # another program may have written it again
                about = json.loads(first + lines.read())
                events = iter(enumerate(about["traceEvents"], 1)) if _is_trace(about) else iter(())
            found = _headers(file, about)
            for header in found:
                place = (header["job_rank"], header["number"])
                if place in assemblies:
                    raise UsageError(f"{file}: rank {place[0]} has two traces of the same communicator; expected one")
                assemblies[place] = Assembly(header["rank"], header["size"])
            headers += found
            _read_events(file, events, assemblies)
    except UsageError:
        raise
    except OSError as error:
        _unreadable(file, error)
    except RecursionError:
        _damaged(file, "has lists in lists in lists, deeper than any trace")
    except ValueError as error:  # of JSON, of UTF-8, or a number of thousands of digits
        _damaged(file, f"is no JSON ({error})")


def _events_by_line(file: Path, lines: Iterator[str]) -> Iterator[tuple[int, Any]]:
    """Yield the events of a file that was written by us: each one stands on a line of its own."""
    for number, line in enumerate(lines, 1):
        if line.startswith("]"):
            return
        try:
            yield number, json.loads(line.rstrip().removesuffix(","))
        except ValueError as error:
            _damaged(file, f"has no whole event on line {number + 1} ({error})")
    _damaged(file, "ends in the middle")


def _is_trace(about: Any) -> bool:
    return isinstance(about, dict) and isinstance(about.get("traceEvents"), list)


def _headers(file: Path, about: Any) -> list[dict[str, Any]]:
    other = about.get("otherData") if _is_trace(about) else None
    ours = other.get("unisono") if isinstance(other, dict) else None
    if not isinstance(ours, dict):
        raise UsageError(
            f"{file}: not a trace of Unisono; expected a file of `unisono run --trace DIR` or comm.trace()"
        )
    if ours.get("format") != FORMAT:
        raise UsageError(
            f"{file}: format {validation.shortened(ours.get('format'))}; this version of Unisono reads "
            f"format {FORMAT}"
        )
    parts = ours.get("parts")
    if not isinstance(parts, list) or not parts:
        _damaged(file, "says of nobody that it is theirs")
    for part in parts:
        for name, kind in HEADER.items():
            if not isinstance(part, dict) or type(part.get(name)) is not kind:
                _damaged(file, f"has a header without {name}")
        _check_header(file, part)
    return cast(list[dict[str, Any]], parts)


def _check_header(file: Path, part: dict[str, Any]) -> None:
    try:
        for key in ("run", "communicator"):
            validation.name(part[key])
        for key in ("number", "rank", "size", "job_rank", "dropped"):
            validation.number(part[key])
        for table in ("clock", "schedules"):
            for key, value in part[table].items():
                if type(value) is not str:
                    raise ValueError(f"{validation.shortened(value)} as {validation.shortened(key)}")
    except ValueError as error:
        _damaged(file, f"has a header that makes no sense ({error})")
    if part["size"] > MOST_RANKS:
        raise UsageError(f"{file}: a communicator of {part['size']} ranks; expected at most {MOST_RANKS}")
    if part["rank"] >= part["size"]:
        _damaged(file, f"has a rank {part['rank']} of {part['size']}")


def _read_events(
    file: Path, events: Iterator[tuple[int, Any]], assemblies: Mapping[tuple[int, int], Assembly]
) -> None:
    for number, event in events:
        try:
            if event["ph"] == "X":
                assemblies[event["pid"], event["tid"] // LANES].add(event)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            missing = isinstance(error, KeyError)
            what = f"without {validation.shortened(error.args[0])}" if missing else f"that makes no sense ({error})"
            _damaged(file, f"has an event {what}: the {number}th")


def _damaged(file: Path, how: str) -> NoReturn:
    raise UsageError(f"{file}: this trace is damaged: it {how}. Record it again")


# ---- all files ---------------------------------------------------------------------------------------------------


def _check_one_run(where: Path, headers: list[dict[str, Any]]) -> None:
    runs = sorted({header["run"] for header in headers})
    if len(runs) > 1:
        raise UsageError(
            f"{where}: traces of {len(runs)} runs ({', '.join(runs[:3])}{', ...' if len(runs) > 3 else ''}); "
            "expected those of one. Record each run in a folder of its own"
        )
    clocks = {json.dumps([header["clock"], header["base_ns"]], sort_keys=True) for header in headers}
    if len(clocks) > 1:
        raise UsageError(
            f"{where}: the ranks had {len(clocks)} different clocks (machines, or containers with a time of their "
            "own); times of different clocks cannot be compared yet"
        )


def _groups(
    where: Path, headers: list[dict[str, Any]], assemblies: Mapping[tuple[int, int], Assembly]
) -> list[TracedCommunicator]:
    by_communicator = defaultdict(list)
    for header in headers:
        by_communicator[header["communicator"]].append(header)
    groups = []
    for communicator, members in by_communicator.items():
        if len({header["size"] for header in members}) > 1:
            _damaged(where, f"says that a communicator ({communicator}) has different numbers of ranks")
        if len({header["rank"] for header in members}) < len(members):
            _damaged(where, f"has two traces of one rank of a communicator ({communicator})")
        parts = {header["rank"]: assemblies[header["job_rank"], header["number"]] for header in members}
        groups.append(
            TracedCommunicator(
                communicator=communicator,
                size=members[0]["size"],
                job_ranks={header["rank"]: header["job_rank"] for header in members},
                calls=Assembly.calls(parts),
                transfers=sorted(
                    (transfer for part in parts.values() for transfer in part.transfers), key=lambda one: one.begin_ns
                ),
                dropped={header["rank"]: header["dropped"] for header in members},
            )
        )
    return sorted(groups, key=lambda group: min(group.job_ranks.values()))
