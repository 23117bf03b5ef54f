"""Builds programs from others. ``yield from`` runs one after another; the functions here do the rest.

* ``mapped``: the same steps on other ranks and other chunks;
* ``backwards``: the steps in reverse order, which turns spreading into collecting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from unisono.errors import ScheduleError
from unisono.schedule import messages
from unisono.schedule.ops import COMBINE, COPY, RECV, SEND, Chunks, Op, listed, new_op, recv, recv_reduce, send
from unisono.schedule.varying import Varying, varying_of

# A program as its author writes it: an iterable of ops and tuples of ops.
Program = Iterable[Op | tuple[Op, ...]]


def mapped(
    program: Program, *, ranks: Sequence[int] | None = None, chunks: Sequence[Chunks] | None = None
) -> Iterator[tuple[Op, ...]]:
    """Run ``program`` with rank ``ranks[i]`` as its rank i and chunk ``chunks[i]`` as its chunk i.

    ``ranks`` and ``chunks`` stay unchanged by default. An entry of ``chunks`` may be several chunks, which then move
    as one, or none: ops without any chunk are left out. Scratch slots are chunks too: list them after those of the
    collective. ScheduleError is raised if an op uses a rank or chunk that is not listed. For example, a ring of the
    even ranks, in a program of rank ``rank``::

        yield from mapped(ring(rank // 2, size // 2), ranks=range(0, size, 2))
    """
    _check_running(program, "mapped")
    ranks = None if ranks is None else tuple(ranks)
    chunks = None if chunks is None else tuple(chunks)
    for step in program:
        turned = []
        for op in _ops(step):
            kind, what, other = op
            try:
                if chunks is not None:
                    what = chunks[what] if type(what) is int and what >= 0 else _several(what, chunks)
                    if type(what) is not int and _is_empty(what) and _names_chunks(op):
                        continue
                if kind == COPY or kind == COMBINE:
                    other = other if chunks is None else _several(other, chunks)
                elif ranks is not None:
                    if other < 0:  # type: ignore[operator]
                        raise IndexError
                    other = other.look_up(other, ranks) if isinstance(other, Varying) else ranks[other]  # type: ignore[index]
            except (IndexError, TypeError):
                listed_ranks = messages.ALL() if ranks is None else len(ranks)
                listed_chunks = messages.ALL() if chunks is None else len(chunks)
                raise ScheduleError(
                    messages.NOT_MAPPED(ranks=listed_ranks, chunks=listed_chunks),
                    op=op,
                    hint=messages.LIST_ALL_USED(),
                ) from None
            turned.append(new_op(Op, (kind, what, other)))
        yield tuple(turned)


def _names_chunks(op: Op) -> bool:
    """Return whether an op has chunks before they are mapped; the checks of steps refuse one without."""
    return type(op.chunks) is int or isinstance(op.chunks, Varying) or len(listed(op.chunks)) > 0


def _is_empty(chunks: Chunks) -> bool:
    return not isinstance(chunks, Varying) and not chunks


def _several(what: Chunks, chunks: Sequence[Chunks]) -> Chunks:
    if (varying := varying_of(what, chunks)) is not None:
        return cast("Chunks", varying.look_up(what, chunks))
    numbers = listed(what)
    if not numbers:
        return ()  # which the checks of steps refuse
    if min(numbers) < 0:
        raise IndexError
    found = tuple(chunk for number in numbers for chunk in listed(chunks[number]))
    return found[0] if len(found) == 1 else found


def backwards(program: Program, *, add: bool = True) -> Iterator[tuple[Op, ...]]:
    """Run ``program`` from its last step to its first, with each send as a receive and each receive as a send.

    A program that spreads a chunk from one rank to all then collects it from all on one. With ``add`` (default),
    arriving data is added to the slot: a broadcast becomes a reduce, an all-gather a reduce-scatter. Without, it
    overwrites the slot: a scatter becomes a gather. ScheduleError is raised if an op is neither a send nor a recv.
    """
    _check_running(program, "backwards")
    arrive = recv_reduce if add else recv
    for step in reversed([_ops(step) for step in program]):
        turned = []
        for op in step:
            if op.kind not in (SEND, RECV):
                raise ScheduleError(
                    messages.NOT_REVERSIBLE(kind=op.kind), op=op, hint=messages.ONLY_REVERSIBLE(send=SEND, recv=RECV)
                )
            peer = cast("int", op.other)
            turned.append(arrive(op.chunks, src=peer) if op.kind == SEND else send(op.chunks, dst=peer))
        yield tuple(turned)


def _check_running(program: object, function: str) -> None:
    if not isinstance(program, Iterable):
        raise ScheduleError(
            messages.NOT_RUNNING(function=function, program=program), hint=messages.CALL_PROGRAM(function=function)
        )


def _ops(step: object) -> tuple[Op, ...]:
    if type(step) is Op:
        return (step,)
    if type(step) is tuple or type(step) is list:
        for op in step:
            if type(op) is not Op:
                break
        else:
            return step  # type: ignore[return-value]
    raise ScheduleError(messages.INNER_NOT_A_STEP(), found=repr(step), hint=messages.WRITE_A_STEP())
