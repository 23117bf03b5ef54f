"""The text form of a schedule: for people to read, for golden files, and to be read back.

::

    unisono schedule 1
    collective all_reduce
    algorithm ring
    size 3
    chunks 3
    slots 3
    rank 0
      0: send 2 to 1; recv_reduce 1 from 2
      1: ...

A line for each step of each rank. Several chunks in one message are written ``0-3`` or ``0-3,6``. Rooted
collectives have a line ``root 2``; what follows a ``#`` is a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

from unisono.errors import UsageError
from unisono.schedule.ops import LINK, Chunks, Op, Step
from unisono.schedule.schedule import Schedule

TITLE = "unisono schedule 1"
NUMBERS = ("size", "chunks", "slots", "root")
MOST_IN_A_LIST = 1_000_000
_OP = re.compile(r"(\w+) ([0-9,-]+) (\w+) ([0-9,-]+)")
_NUMBER = re.compile(r"[0-9]{1,9}")


def format_step(step: Step) -> str:
    """Write the ops of a step on one line."""
    return "; ".join(op.text() for op in step)


def format_program(schedule: Schedule, rank: int) -> Iterator[str]:
    """Yield the lines for one rank."""
    yield f"rank {rank}"
    for index, step in enumerate(schedule.program(rank)):
        yield f"  {index}: {format_step(step)}"


def format_schedule(schedule: Schedule) -> str:
    """Write the whole schedule."""
    header = [TITLE, f"collective {schedule.collective}", f"algorithm {schedule.algorithm}"]
    header += [f"{name} {getattr(schedule, name)}" for name in NUMBERS if getattr(schedule, name) is not None]
    lines = [line for rank in range(schedule.size) for line in format_program(schedule, rank)]
    return "\n".join(header + lines) + "\n"


def parse_schedule(text: str, source: str = "the text") -> Schedule:
    """Read a schedule back; raise UsageError with the number of the first line that makes no sense."""
    header: dict[str, str] = {}
    programs: dict[int, list[Step]] = {}
    current: list[Step] | None = None
    titled = False
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.split("#")[0].strip()
        if not line:
            continue
        if not titled:
            if line != TITLE:
                _refuse(source, number, raw, f"a schedule that begins with `{TITLE}`")
            titled = True
            continue
        word, _, rest = line.partition(" ")
        if word == "rank" and _NUMBER.fullmatch(rest):
            if int(rest) in programs:
                _refuse(source, number, raw, f"rank {rest} only once")
            current = programs[int(rest)] = []
        elif current is None:
            known = word in ("collective", "algorithm") or (word in NUMBERS and _NUMBER.fullmatch(rest))
            if not known or not rest or word in header:
                _refuse(source, number, raw, "a line such as `collective all_reduce` or `size 5`, each one once")
            header[word] = rest
        else:
            index, colon, ops = line.partition(":")
            if not colon or index != str(len(current)):
                _refuse(source, number, raw, f"step {len(current)}, such as `{len(current)}: send 0 to 1`")
            current.append(tuple(_parse_op(op.strip(), source, number, raw) for op in ops.split(";")))
    for name in ("collective", "algorithm", "size", "chunks", "slots"):
        if name not in header:
            raise UsageError(f"{source}: there is no line `{name} ...`")
    size = int(header["size"])
    if size < 1 or len(programs) != size or sorted(programs) != list(range(size)):
        raise UsageError(
            f"{source}: programs for ranks {sorted(programs)}; expected those of {size} ranks, from 0 on"
        )
    return Schedule(
        collective=header["collective"], algorithm=header["algorithm"], size=size, chunks=int(header["chunks"]),
        slots=int(header["slots"]), make=programs.__getitem__,
        root=int(header["root"]) if "root" in header else None,
        own_step_limit=max(map(len, programs.values()), default=0) + 1,
    )  # fmt: skip


def _parse_op(text: str, source: str, number: int, raw: str) -> Op:
    match = _OP.fullmatch(text)
    if match is None or LINK.get(match[1]) != match[3]:
        forms = ", ".join(f"`{kind} 0 {link} 1`" for kind, link in LINK.items())
        _refuse(source, number, raw, f"ops of the forms {forms}, with ; between them")
    return Op(match[1], *(_parse_chunks(match[group], source, number, raw) for group in (2, 4)))


def _parse_chunks(text: str, source: str, number: int, raw: str) -> Chunks:
    runs = []
    for run in text.split(","):
        first, dash, last = run.partition("-")
        if not _NUMBER.fullmatch(first) or (dash and not _NUMBER.fullmatch(last)) or int(last or first) < int(first):
            _refuse(source, number, raw, "chunks such as 4, 0-3 or 0-3,6")
        runs.append(range(int(first), int(last or first) + 1))
    if len(runs) == 1:
        return runs[0] if len(runs[0]) > 1 else runs[0][0]
    if sum(map(len, runs)) > MOST_IN_A_LIST:
        _refuse(source, number, raw, f"at most {MOST_IN_A_LIST} chunks in a list")
    return tuple(chunk for run in runs for chunk in run)


def _refuse(source: str, number: int, raw: str, expected: str) -> NoReturn:
    raise UsageError(f"{source}, line {number}: expected {expected}; found {raw.strip()!r}")
