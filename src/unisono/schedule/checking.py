"""Look at what a program yields before anybody relies on it.

A program is somebody's generator: it may yield rubbish, name a rank that does not exist, raise, or never end.
All of that becomes a ScheduleError that says which rank and step. What passes is in *normal form*: a step is a
tuple of ops, and a chunk is an ``int``, a ``range`` with stride 1, or a tuple; so equal chunks compare equal.
"""

from __future__ import annotations

import operator
import traceback
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn, Protocol

from unisono.errors import HazardError, ScheduleError, UnisonoError
from unisono.schedule.ops import COMBINE, COPY, LINK, Chunks, Op, Step

STEP_HINT = (
    "yield an op such as send(0, dst=1), or a tuple of ops: yield send(0, dst=1), recv(1, src=2); "
    "a generator of ops needs a star: yield *(send(0, dst=r) for r in others),"
)


class Checkable(Protocol):
    """What must be known of a schedule to check one of its programs."""

    @property
    def label(self) -> str: ...  # noqa: D102
    @property
    def size(self) -> int: ...  # noqa: D102
    @property
    def slots(self) -> int: ...  # noqa: D102
    @property
    def step_limit(self) -> int: ...  # noqa: D102


def checked(steps: Iterable[object], rank: int, schedule: Checkable) -> Iterator[Step]:
    """Pass on the steps of one rank's program in normal form, or raise at the first that makes no sense."""
    size, slots, limit = schedule.size, schedule.slots, schedule.step_limit
    index = 0
    for yielded in _running(steps, rank, schedule):
        ops = (yielded,) if type(yielded) is Op else yielded
        if type(ops) is not tuple and type(ops) is not list:
            _refuse(schedule, rank, index, "this is not a step", found=_describe(yielded), hint=STEP_HINT)
        if not ops:
            continue  # a step in which this rank does nothing
        if index == limit:
            _refuse(
                schedule, rank, index, f"the program has not ended after {limit} steps",
                hint="end the loop, or declare @algorithm(..., step_limit=N) if it really is that long",
            )  # fmt: skip
        step = []
        for op in ops:
            if type(op) is not Op:
                _refuse(schedule, rank, index, "this is not an op", found=_describe(op), hint=STEP_HINT)
            kind, chunks, other = op
            # The common case, one valid chunk and a valid peer, costs two comparisons.
            if not (
                type(chunks) is int and 0 <= chunks < slots
                and type(other) is int and 0 <= other < size and other != rank
                and kind != COPY and kind != COMBINE
            ):  # fmt: skip
                op = _normal_op(op, rank, index, schedule)
            step.append(op)
        yield tuple(step)
        index += 1


def _running(steps: Iterable[object], rank: int, schedule: Checkable) -> Iterator[Any]:
    """Iterate over the author's code and turn what it raises into an error that says where."""
    try:
        yield from steps
    except UnisonoError:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise ScheduleError(
            f"the program raised {type(error).__name__}: {error}",
            algorithm=schedule.label, size=schedule.size, rank=rank,
            found=f"line {frame.lineno} of {frame.filename.rpartition('/')[2]}: {frame.line}",
            hint="mend the program: it must work for every rank of this size",
        ) from error  # fmt: skip


def _normal_op(op: Op, rank: int, index: int, schedule: Checkable) -> Op:
    kind, chunks, other = op
    if kind not in LINK:
        _refuse(schedule, rank, index, f"there is no op {kind!r}", op, expected=f"one of {', '.join(LINK)}")
    chunks = _normal_chunks(chunks, op, rank, index, schedule)
    if kind == COPY or kind == COMBINE:
        other = _normal_chunks(other, op, rank, index, schedule)
        if (1 if type(chunks) is int else len(chunks)) != (1 if type(other) is int else len(other)):  # type: ignore[arg-type]
            _refuse(schedule, rank, index, "the two sides have different numbers of chunks", op)
        return Op(kind, chunks, other)
    peer = _integer(other, "a rank", op, rank, index, schedule)
    if not 0 <= peer < schedule.size:
        _refuse(
            schedule, rank, index, f"there is no rank {peer}", op,
            expected=f"a rank from 0 to {schedule.size - 1}", hint="wrap round with % size, or stop at the end",
        )  # fmt: skip
    if peer == rank:
        _refuse(
            schedule, rank, index, "a rank cannot send to or receive from itself", op,
            hint="use copy(chunk, to=...) or combine(chunk, into=...) for what stays on this rank",
        )  # fmt: skip
    return Op(kind, chunks, peer)


def _normal_chunks(chunks: object, op: Op, rank: int, index: int, schedule: Checkable) -> Chunks:
    if isinstance(chunks, Sequence) and not isinstance(chunks, str):
        if not chunks:
            _refuse(schedule, rank, index, "the op names no chunk", op, hint="leave the op out of the step")
        if type(chunks) is not range and set(map(type, chunks)) != {int}:
            chunks = tuple(_integer(chunk, "a chunk", op, rank, index, schedule) for chunk in chunks)
        lowest, highest = min(chunks), max(chunks)
        if len(set(chunks)) != len(chunks):
            raise HazardError(
                "the op names a chunk twice",
                algorithm=schedule.label, size=schedule.size, rank=rank, step=index, op=op,
            )  # fmt: skip
        normal = _shortest_form(chunks)
    else:
        normal = lowest = highest = _integer(chunks, "a chunk", op, rank, index, schedule)
    if lowest < 0 or highest >= schedule.slots:
        missing = lowest if lowest < 0 else highest
        _refuse(
            schedule, rank, index, f"there is no chunk {missing}", op, chunk=missing,
            expected=f"a chunk from 0 to {schedule.slots - 1}",
            hint="wrap round with % size, or declare more: @algorithm(..., chunks=, scratch=)",
        )  # fmt: skip
    return normal


def _shortest_form(chunks: Sequence[int]) -> Chunks:
    if len(chunks) == 1:
        return chunks[0]
    if type(chunks) is range and chunks.step == 1:
        return chunks
    run = range(chunks[0], chunks[0] + len(chunks))
    chunks = tuple(chunks)
    return run if chunks[-1] == run[-1] and chunks == tuple(run) else chunks


def _integer(value: object, what: str, op: Op, rank: int, index: int, schedule: Checkable) -> int:
    if type(value) is not bool:
        try:
            return operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    _refuse(
        schedule, rank, index, f"{value!r} is not {what}", op,
        expected="an integer", found=_describe(value), hint="use // instead of / when you divide",
    )  # fmt: skip


def _refuse(
    schedule: Checkable, rank: int, index: int, what: str, op: Op | None = None, **parts: Any
) -> NoReturn:
    raise ScheduleError(
        what, algorithm=schedule.label, size=schedule.size, rank=rank, step=index, op=op, **parts
    )


def _describe(value: object) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"
