"""Reads a trace and checks it: written by Unisono, complete, of one run and one clock."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, cast

from unisono.errors import UsageError
from unisono.message import Message, listed
from unisono.tracing import messages, validation
from unisono.tracing.assembling import Assembly
from unisono.tracing.chrome import FORMAT, LANES
from unisono.tracing.facts import Hosts
from unisono.tracing.files import BEFORE_EVENTS, JOINED, parts_in
from unisono.tracing.run import Run, TracedCommunicator

MOST_BYTES = 256 * 2**20
MOST_RANKS = 1024  # of a communicator
HEADER = {
    "run": str, "communicator": str, "number": int, "rank": int, "size": int, "job_rank": int, "clock": dict,
    "base_ns": int, "dropped": int, "schedules": dict,
}  # fmt: skip


def read_run(path: str | PathLike[str], *, missing_ok: bool = False, most_bytes: int = MOST_BYTES) -> Run:
    """Read the trace at ``path``: a file, or the folder of ``unisono run --trace``.

    With ``missing_ok``, the traces of some ranks may be missing, for example of a rank that was killed (default:
    they must all be there). Traces larger than ``most_bytes`` (default 256 MiB) are refused. UsageError is raised if
    the trace is missing or invalid. For example::

        run = unisono.read_run("run.json")
        print(unisono.tracing.summary(run))
    """
    where = Path(path)
    try:
        files = files_of(where)
        size = sum(file.stat().st_size for file in files)
    except OSError as error:
        _unreadable(where, error)
    if size > most_bytes:
        raise UsageError(messages.TOO_LARGE(path=where, size=size / 2**20, most=most_bytes / 2**20))
    assemblies: dict[tuple[int, int], Assembly] = {}
    headers: list[dict[str, Any]] = []
    for file in files:
        _read_file(file, headers, assemblies)
    _check_one_run(where, headers)
    groups = _groups(where, headers, assemblies)
    if not missing_ok:
        for group in groups:
            if group.missing:
                ranks = listed(map(str, group.missing))
                raise UsageError(messages.RANKS_MISSING(path=where, ranks=ranks, size=group.size))
    schedules = {digest: text for header in headers for digest, text in header["schedules"].items()}
    return Run(str(where), groups, headers[0]["clock"], schedules)


def files_of(where: Path) -> list[Path]:
    """Return the files of the trace at a path: a file, or a folder."""
    if where.is_file():
        return [where]
    if where.exists() and not where.is_dir():
        _refuse_special(where)
    if not where.is_dir():
        raise UsageError(messages.NO_SUCH_TRACE(path=str(where)))
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
        if others:
            names = listed(other.name for other in others[:5])
            raise UsageError(messages.SEVERAL_IN_FOLDER(path=where, joined=JOINED, names=names))
        raise UsageError(messages.NO_TRACE_IN_FOLDER(path=where, joined=JOINED))
    files = [where / JOINED, *parts]
    for file in files:
        if not file.is_file():
            _refuse_special(file)
    return files


def _refuse_special(file: Path) -> NoReturn:
    raise UsageError(messages.NOT_A_FILE(path=file))


def _unreadable(file: Path, error: OSError) -> NoReturn:
    raise UsageError(messages.NOT_READABLE(path=file, reason=error.strerror)) from error


def check_header(file: Path) -> None:
    """Raise UsageError unless a file is a trace as Unisono writes it: with one event on each line."""
    try:
        with open(file, encoding="utf-8") as lines:
            first = lines.readline()
    except OSError as error:
        _unreadable(file, error)
    except ValueError:
        first = ""
    if not (first.startswith("{") and first.rstrip().endswith(BEFORE_EVENTS)):
        raise UsageError(messages.NOT_OURS(path=file))
    try:
        about = json.loads(first + "]}")
    except (ValueError, RecursionError) as error:
        _damaged(file, messages.NOT_JSON(error=error))
    _headers(file, about)


# ---- one file ----------------------------------------------------------------------------------------------------


def _read_file(file: Path, headers: list[dict[str, Any]], assemblies: dict[tuple[int, int], Assembly]) -> None:
    try:
        with open(file, encoding="utf-8") as lines:
            first = lines.readline()
            if first.startswith("{") and first.rstrip().endswith(BEFORE_EVENTS):
                about, events = json.loads(first + "]}"), _events_by_line(file, lines)
            else:  # another program may have rewritten it
                about = json.loads(first + lines.read())
                events = iter(enumerate(about["traceEvents"], 1)) if _is_trace(about) else iter(())
            found = _headers(file, about)
            for header in found:
                place = (header["job_rank"], header["number"])
                if place in assemblies:
                    raise UsageError(messages.TWO_TRACES(path=file, rank=place[0]))
                assemblies[place] = Assembly(header["rank"], header["size"])
            headers += found
            _read_events(file, events, assemblies)
    except UsageError:
        raise
    except OSError as error:
        _unreadable(file, error)
    except RecursionError:
        _damaged(file, messages.TOO_DEEP())
    except ValueError as error:  # of JSON, of UTF-8, or a number of thousands of digits
        _damaged(file, messages.NOT_JSON(error=error))


def _events_by_line(file: Path, lines: Iterator[str]) -> Iterator[tuple[int, Any]]:
    """Yield the events of a file that Unisono wrote, which has one event on each line."""
    for number, line in enumerate(lines, 1):
        if line.startswith("]"):
            return
        try:
            yield number, json.loads(line.rstrip().removesuffix(","))
        except ValueError as error:
            _damaged(file, messages.NO_WHOLE_EVENT(line=number + 1, error=error))
    _damaged(file, messages.CUT_OFF())


def _is_trace(about: Any) -> bool:
    return isinstance(about, dict) and isinstance(about.get("traceEvents"), list)


def _headers(file: Path, about: Any) -> list[dict[str, Any]]:
    other = about.get("otherData") if _is_trace(about) else None
    ours = other.get("unisono") if isinstance(other, dict) else None
    if not isinstance(ours, dict):
        raise UsageError(messages.NOT_OURS(path=file))
    if ours.get("format") != FORMAT:
        found = validation.shortened(ours.get("format"))
        raise UsageError(messages.OTHER_FORMAT(path=file, found=found, format=FORMAT))
    parts = ours.get("parts")
    if not isinstance(parts, list) or not parts:
        _damaged(file, messages.NO_PARTS())
    for part in parts:
        for name, kind in HEADER.items():
            if not isinstance(part, dict) or type(part.get(name)) is not kind:
                _damaged(file, messages.HEADER_WITHOUT(name=name))
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
                    raise ValueError(
                        messages.NOT_TEXT(value=validation.shortened(value), name=validation.shortened(key))
                    )
    except ValueError as error:
        _damaged(file, messages.BAD_HEADER(error=error.args[0]))
    if part["size"] > MOST_RANKS:
        raise UsageError(messages.TOO_MANY_RANKS(path=file, size=part["size"], most=MOST_RANKS))
    if part["rank"] >= part["size"]:
        _damaged(file, messages.BAD_RANK(rank=part["rank"], size=part["size"]))
    try:
        _hosts(part)
        _uncertainty_ns(part)
    except (KeyError, TypeError, ValueError) as error:
        _damaged(file, messages.BAD_HEADER(error=validation.shortened(error.args[0])))


def _hosts(part: dict[str, Any]) -> Hosts | None:
    """Return the hosts in a header, None if the job was on one."""
    if "hosts" not in part:
        return None
    names = tuple(validation.name(name) for name in part["hosts"]["names"])
    host_of = tuple(validation.number(host) for host in part["hosts"]["host_of"])
    if len(host_of) != part["size"] or not all(host < len(names) for host in host_of):
        raise ValueError("hosts")
    return Hosts(names, host_of)


def _uncertainty_ns(part: dict[str, Any]) -> int:
    """Return the uncertainty of the alignment in a header; 0 if the times are those of the clock that was read."""
    return validation.number(part["alignment"]["uncertainty_ns"]) if "alignment" in part else 0


def _read_events(
    file: Path, events: Iterator[tuple[int, Any]], assemblies: Mapping[tuple[int, int], Assembly]
) -> None:
    for number, event in events:
        try:
            if event["ph"] == "X":
                assemblies[event["pid"], event["tid"] // LANES].add(event)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, KeyError):
                _damaged(file, messages.EVENT_WITHOUT(number=number, name=validation.shortened(error.args[0])))
            _damaged(file, messages.BAD_EVENT(number=number, error=error.args[0] if error.args else ""))


def _damaged(file: Path, damage: Message) -> NoReturn:
    raise UsageError(messages.DAMAGED(path=file, damage=damage))


# ---- all files ---------------------------------------------------------------------------------------------------


def _check_one_run(where: Path, headers: list[dict[str, Any]]) -> None:
    runs = sorted({header["run"] for header in headers})
    if len(runs) > 1:
        names = listed(runs, longest=3)
        raise UsageError(messages.SEVERAL_RUNS(path=where, count=len(runs), runs=names))
    clocks = {json.dumps([header["clock"], header["base_ns"]], sort_keys=True) for header in headers}
    if len(clocks) > 1:
        raise UsageError(messages.SEVERAL_CLOCKS(path=where, count=len(clocks)))


def _groups(
    where: Path, headers: list[dict[str, Any]], assemblies: Mapping[tuple[int, int], Assembly]
) -> list[TracedCommunicator]:
    by_communicator = defaultdict(list)
    for header in headers:
        by_communicator[header["communicator"]].append(header)
    groups = []
    for communicator, members in by_communicator.items():
        if len({header["size"] for header in members}) > 1:
            _damaged(where, messages.SIZES_DIFFER(communicator=communicator))
        if len({header["rank"] for header in members}) < len(members):
            _damaged(where, messages.RANK_TWICE(communicator=communicator))
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
                hosts=_hosts(members[0]),
                uncertainties_ns={header["rank"]: _uncertainty_ns(header) for header in members},
            )
        )
    return sorted(groups, key=lambda group: min(group.job_ranks.values()))
