"""The text form of a schedule: it can be read by people, compared with golden files, and parsed again.

::

    unisono schedule 1
    collective all_reduce
    algorithm ring
    size 3
    chunks 3
    slots 3
    rank 0
      1: send 2 to 1; recv_reduce 1 from 2
      2: ...

A line for each step of each rank. Several chunks in one message are written ``0-3`` or ``0-3,6``. Rooted
collectives have a line ``root 2``; an algorithm that needs deeper channels has a line ``depth 2``; a ``#`` begins a
comment. Steps are numbered from 1. Earlier versions of Unisono numbered them from 0; such a file, and a trace that
contains such a text, can still be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from unisono.errors import UsageError
from unisono.message import Message
from unisono.schedule import text_messages as messages
from unisono.schedule.ops import LINK, Chunks, Op, Step
from unisono.schedule.schedule import Schedule

TITLE = "unisono schedule 1"
NUMBERS = ("size", "chunks", "slots", "root", "depth")
MOST_IN_A_LIST = 1_000_000
_OP = re.compile(r"(\w+) ([0-9,-]+) (\w+) ([0-9,-]+)")
_NUMBER = re.compile(r"[0-9]{1,9}")


def format_step(step: Step) -> str:
    """Write the ops of a step on one line."""
    return "; ".join(op.text() for op in step)


def format_program(schedule: Schedule, rank: int) -> Iterator[str]:
    """Yield the lines for one rank."""
    yield f"rank {rank}"
    for number, step in enumerate(schedule.program(rank), 1):
        yield f"  {number}: {format_step(step)}"


def format_schedule(schedule: Schedule) -> str:
    """Write the whole schedule."""
    header = [TITLE, f"collective {schedule.collective}", f"algorithm {schedule.algorithm}"]
    numbers = {name: getattr(schedule, name) for name in NUMBERS}
    if schedule.depth == 1:
        del numbers["depth"]
    header += [f"{name} {number}" for name, number in numbers.items() if number is not None]
    lines = [line for rank in range(schedule.size) for line in format_program(schedule, rank)]
    return "\n".join(header + lines) + "\n"


def parse_schedule(text: str, source: str = "the text") -> Schedule:
    """Read a schedule back; raise UsageError with the number of the first line that makes no sense."""
    header: dict[str, str] = {}
    programs: dict[int, list[Step]] = {}
    current: list[Step] | None = None
    titled, first = False, 1
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#")[0].strip()
        if not line:
            continue
        if not titled:
            if line != TITLE:
                raise UsageError(messages.NOT_A_SCHEDULE(source=source, title=TITLE, found=repr(raw.strip()[:60])))
            titled = True
            continue
        word, _, rest = line.partition(" ")
        if word == "rank" and _NUMBER.fullmatch(rest):
            if int(rest) in programs:
                _refuse(source, number, raw, messages.RANK_ONCE(rank=rest))
            current = programs[int(rest)] = []
        elif current is None:
            known = word in ("collective", "algorithm") or (word in NUMBERS and _NUMBER.fullmatch(rest))
            if not known or not rest or word in header:
                _refuse(source, number, raw, messages.A_HEADER_LINE())
            header[word] = rest
        else:
            step, colon, ops = line.partition(":")
            if not current:
                first = 0 if step == "0" else 1  # 0 in the files of earlier versions
            if not colon or step != str(first + len(current)):
                _refuse(source, number, raw, messages.A_STEP_LINE(number=first + len(current)))
            current.append(tuple(_parse_op(op.strip(), source, number, raw) for op in ops.split(";")))
    if not titled:
        raise UsageError(messages.NOT_A_SCHEDULE(source=source, title=TITLE, found=messages.EMPTY()))
    for name in ("collective", "algorithm", "size", "chunks", "slots"):
        if name not in header:
            raise UsageError(messages.NO_LINE(source=source, name=name))
    size = int(header["size"])
    if size < 1 or len(programs) != size or sorted(programs) != list(range(size)):
        raise UsageError(messages.OTHER_RANKS(source=source, ranks=sorted(programs), size=size))
    return Schedule(
        collective=header["collective"], algorithm=header["algorithm"], size=size, chunks=int(header["chunks"]),
        slots=int(header["slots"]), make=programs.__getitem__,
        root=int(header["root"]) if "root" in header else None,
        own_step_limit=max(map(len, programs.values()), default=0) + 1, depth=int(header.get("depth", 1)),
    )  # fmt: skip


def _parse_op(text: str, source: str, number: int, raw: str) -> Op:
    match = _OP.fullmatch(text)
    if match is None or LINK.get(match[1]) != match[3]:
        forms = ", ".join(f"`{kind} 0 {link} 1`" for kind, link in LINK.items())
        _refuse(source, number, raw, messages.OPS_OF_FORMS(forms=forms))
    return Op(match[1], *(_parse_chunks(match[group], source, number, raw) for group in (2, 4)))


def _parse_chunks(text: str, source: str, number: int, raw: str) -> Chunks:
    runs = []
    for run in text.split(","):
        first, dash, last = run.partition("-")
        if not _NUMBER.fullmatch(first) or (dash and not _NUMBER.fullmatch(last)) or int(last or first) < int(first):
            _refuse(source, number, raw, messages.CHUNK_FORMS())
        runs.append(range(int(first), int(last or first) + 1))
    if len(runs) == 1:
        return runs[0] if len(runs[0]) > 1 else runs[0][0]
    if sum(map(len, runs)) > MOST_IN_A_LIST:
        _refuse(source, number, raw, messages.LIST_LIMIT(limit=MOST_IN_A_LIST))
    return tuple(chunk for run in runs for chunk in run)


def _refuse(source: str, number: int, raw: str, expected: Message) -> NoReturn:
    raise UsageError(messages.BAD_LINE(source=source, line=number, expected=expected, found=repr(raw.strip())))
