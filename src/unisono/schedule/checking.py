"""Checks the steps that a program yields before other code relies on them.

A program is a user's generator: it may yield anything, name a rank that does not exist, raise, or never end. All of
that becomes a ScheduleError with the rank and the step. Checked steps are in *normal form*: a step is a
tuple of ops, sends first and otherwise as written; a chunk is an ``int``, a ``range`` with stride 1, or a tuple, so
that equal chunks compare equal.
"""

from __future__ import annotations

import operator
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from unisono.errors import HazardError, ScheduleError, UnisonoError
from unisono.message import Message, Template, listed
from unisono.schedule import messages
from unisono.schedule.hazards import check_hazards
from unisono.schedule.ops import LINK, RECV, RECV_REDUCE, SEND, Chunks, Op, Step, count

TOO_LARGE = 1 << 62


class Bounds(NamedTuple):
    """The limits of a program."""

    rank: int
    size: int
    slots: int
    step_limit: int


def checked(make: Callable[[], object], bounds: Bounds) -> Iterator[Step]:
    """Run one rank's program and yield its steps in normal form; raise ScheduleError at the first invalid one."""
    rank, size, slots, limit = bounds
    index = 0
    try:
        steps = make()
        if not isinstance(steps, Iterable):
            raise ScheduleError(messages.NOT_STEPS(type=type(steps).__name__), hint=messages.USE_YIELD())
        for count_of_yields, yielded in enumerate(steps):
            if count_of_yields == limit:
                raise ScheduleError(messages.NOT_ENDED(limit=limit), hint=messages.END_THE_LOOP())
            ops: Any = (yielded,) if type(yielded) is Op else yielded
            if type(ops) is not tuple and type(ops) is not list:
                raise ScheduleError(messages.NOT_A_STEP(), found=_describe(yielded), hint=messages.WRITE_A_STEP())
            ops = tuple(ops)  # a list may change while it is checked
            if not ops:
                continue  # a step in which this rank does nothing
            plain, in_order, before = True, True, SEND
            for op in ops:
                # The common case, one valid chunk and a valid peer, costs a few comparisons.
                if type(op) is not Op:
                    raise ScheduleError(messages.NOT_AN_OP(), found=_describe(op), hint=messages.WRITE_A_STEP())
                kind, chunks, other = op
                if not (
                    type(chunks) is int and 0 <= chunks < slots
                    and type(other) is int and 0 <= other < size and other != rank
                    and type(kind) is str and (kind == SEND or kind == RECV or kind == RECV_REDUCE)
                ):  # fmt: skip
                    plain = False
                    break
                if kind == SEND != before:
                    in_order = False
                before = kind
            if not plain:
                ops = [_normal_op(op, bounds) for op in ops]
            if not (plain and in_order):
                ops = [op for op in ops if op[0] == SEND] + [op for op in ops if op[0] != SEND]
            # Sends come first; where only the last op writes, and nothing local is read, there is no hazard.
            if (len(ops) > 1 and ops[-2][0] != SEND) or not plain:
                check_hazards(ops)
            yield tuple(ops)
            index += 1
    except ScheduleError as error:
        raise error.at(rank=rank, step=index) from error.__cause__
    except UnisonoError:
        raise
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # from the author's code
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise ScheduleError(
            messages.PROGRAM_RAISED(error=describe_exception(error)), rank=rank, step=index,
            found=messages.AT_LINE(line=frame.lineno, file=frame.filename.rpartition("/")[2], code=frame.line),
            hint=messages.WRITE_AN_OP() if _is_about_an_op(error) else messages.FIX_PROGRAM(),
        ) from error  # fmt: skip


def describe_exception(error: BaseException) -> str:
    """Return the type and text of an exception that user code raised; its __str__ may fail."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def _is_about_an_op(error: BaseException) -> bool:
    """Return whether the author called send() or another op with wrong arguments."""
    return type(error) is TypeError and any(str(error).startswith(f"{kind}()") for kind in LINK)


def _normal_op(op: Any, bounds: Bounds) -> Op:
    if type(op) is not Op:
        raise ScheduleError(messages.NOT_AN_OP(), found=_describe(op), hint=messages.WRITE_A_STEP())
    kind, chunks, other = op
    try:
        if type(kind) is not str or kind not in LINK:
            raise ScheduleError(messages.NO_SUCH_OP(kind=repr(kind)), expected=messages.ONE_OF(names=listed(LINK)))
        chunks = _normal_chunks(chunks, bounds.slots)
        if op.is_local:
            other = _normal_chunks(other, bounds.slots)
            if count(chunks) != count(other):
                raise ScheduleError(messages.DIFFERENT_COUNTS())
        else:
            other = _normal_peer(other, bounds)
    except ScheduleError as error:
        raise error.at(op=op) from None
    return Op(kind, chunks, other)


def _normal_peer(other: object, bounds: Bounds) -> int:
    peer = _integer(other, messages.A_RANK)
    if not 0 <= peer < bounds.size:
        raise ScheduleError(
            messages.NO_SUCH_RANK(rank=peer),
            expected=messages.RANK_RANGE(last=bounds.size - 1),
            hint=messages.WRAP_AROUND(),
        )
    if peer == bounds.rank:
        raise ScheduleError(messages.TALKS_TO_ITSELF(), hint=messages.USE_LOCAL_OP())
    return peer


def _normal_chunks(chunks: object, slots: int) -> Chunks:
    if type(chunks) is int and 0 <= chunks < slots:  # the common case
        return chunks
    if isinstance(chunks, Sequence) and not isinstance(chunks, str):
        if type(chunks) is not range:
            chunks = tuple(chunks)  # a user's own sequence may return other items the second time
        if not chunks:
            raise ScheduleError(messages.NO_CHUNK_NAMED(), hint=messages.LEAVE_OP_OUT())
        if type(chunks) is range:
            lowest, highest = min(chunks[0], chunks[-1]), max(chunks[0], chunks[-1])
        else:
            if set(map(type, chunks)) != {int}:
                chunks = tuple(_integer(chunk, messages.A_CHUNK) for chunk in chunks)
            if len(set(chunks)) != len(chunks):
                raise HazardError(messages.CHUNK_NAMED_TWICE())
            lowest, highest = min(chunks), max(chunks)
    else:
        lowest = highest = _integer(chunks, messages.A_CHUNK)
        chunks = (lowest,)
    if lowest < 0 or highest >= slots:
        missing = lowest if lowest < 0 else highest
        raise ScheduleError(
            messages.NO_SUCH_CHUNK(chunk=missing),
            chunk=missing,
            expected=messages.DECLARED_CHUNKS(last=slots - 1),
            hint=messages.DECLARE_MORE(),
        )
    return _shortest_form(chunks)


def _shortest_form(chunks: Sequence[int]) -> Chunks:
    if len(chunks) == 1:
        return chunks[0]
    if type(chunks) is range and chunks.step == 1:
        return chunks
    consecutive = range(chunks[0], chunks[0] + len(chunks))
    chunks = tuple(chunks)
    return consecutive if chunks[-1] == consecutive[-1] and chunks == tuple(consecutive) else chunks


def _integer(value: Any, kind: Template) -> int:
    if type(value) is not bool:
        try:
            number = int.__int__(operator.index(value))  # also of a subclass: its operators are not those of int
        except TypeError:
            pass
        else:
            if abs(number) < TOO_LARGE:
                return number
            raise ScheduleError(messages.TOO_MANY_BITS(bits=number.bit_length(), kind=kind()))
    raise ScheduleError(
        messages.IS_NOT(value=repr(value), kind=kind()), expected=messages.AN_INTEGER(), found=_describe(value),
        hint=messages.USE_FLOOR_DIVISION(),
    )  # fmt: skip


def _describe(value: object) -> Message:
    try:
        text = repr(value)
        text = text if len(text) <= 60 else text[:57] + "..."
    except Exception:
        text = messages.UNPRINTABLE()
    return messages.VALUE_OF_TYPE(value=text, type=type(value).__name__)
