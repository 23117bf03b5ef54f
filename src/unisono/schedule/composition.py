"""Make a program out of others. ``yield from`` puts one after another; these do the rest.

* ``mapped``: the same order of events with other ranks and on other chunks;
* ``backwards``: the film run in reverse, which turns spreading into collecting;
* ``together``: two programs side by side, step by step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import cast

from unisono.errors import ScheduleError
from unisono.schedule.checking import STEP_HINT
from unisono.schedule.ops import RECV, SEND, Chunks, Op, listed, recv, recv_reduce, send

# A program as its author sees it: something that yields an op or a tuple of ops.
Program = Iterable[Op | tuple[Op, ...]]


def mapped(
    program: Program, *, ranks: Sequence[int] | None = None, chunks: Sequence[Chunks] | None = None
) -> Iterator[tuple[Op, ...]]:
    """Play ``program`` with rank ``ranks[i]`` for its rank i and chunk ``chunks[i]`` for its chunk i.

    An entry of ``chunks`` may be several chunks: the program then moves them as one. Scratch slots are chunks
    like the others: list them after the collective's own.
    """
    for step in program:
        yield tuple(_mapped_op(op, ranks, chunks) for op in _ops(step))


def _mapped_op(op: Op, ranks: Sequence[int] | None, chunks: Sequence[Chunks] | None) -> Op:
    kind, what, other = op
    if chunks is not None:
        what = _looked_up(what, chunks, op)
        if op.is_local:
            other = _looked_up(other, chunks, op)
    if ranks is not None and not op.is_local:
        if not isinstance(other, int) or not 0 <= other < len(ranks):
            raise ScheduleError(
                f"mapped(ranks=...) has {len(ranks)} ranks, and the program names another",
                op=op, hint="give the inner program the size of its group: program(me, len(ranks))",
            )  # fmt: skip
        other = ranks[other]
    return Op(kind, what, other)


def _looked_up(what: Chunks, chunks: Sequence[Chunks], op: Op) -> Chunks:
    numbers = listed(what)
    if min(numbers) < 0 or max(numbers) >= len(chunks):
        raise ScheduleError(
            f"mapped(chunks=...) has {len(chunks)} entries, and the program names another chunk",
            op=op, hint="list a chunk for each that the inner program uses, scratch included",
        )  # fmt: skip
    if isinstance(what, int):
        return chunks[what]
    return tuple(chunk for number in numbers for chunk in listed(chunks[number]))


def backwards(program: Program, *, add: bool = True) -> Iterator[tuple[Op, ...]]:
    """Play ``program`` from its last step to its first, each send a receive and each receive a send.

    What spread a chunk from one rank to all then collects it from all into one. With ``add`` the arriving data
    is added to what is there: a broadcast becomes a reduce, an all-gather a reduce-scatter. Without, it
    overwrites: a scatter becomes a gather.
    """
    arrive = recv_reduce if add else recv
    for step in reversed([_ops(step) for step in program]):
        turned = []
        for op in step:
            if op.kind not in (SEND, RECV):
                raise ScheduleError(
                    f"a program with `{op.kind}` cannot run backwards",
                    op=op, hint=f"only {SEND} and {RECV} lose nothing that the way back would need",
                )  # fmt: skip
            peer = cast("int", op.other)
            turned.append(arrive(op.chunks, src=peer) if op.kind == SEND else send(op.chunks, dst=peer))
        yield tuple(turned)


def together(*programs: Program) -> Iterator[tuple[Op, ...]]:
    """Play several programs side by side: their first steps are one step, then their second ones, and so on."""
    for steps in zip_longest(*programs, fillvalue=()):
        yield tuple(op for step in steps for op in _ops(step))


def _ops(step: object) -> tuple[Op, ...]:
    ops = (step,) if type(step) is Op else step
    if isinstance(ops, list | tuple) and all(type(op) is Op for op in ops):
        return tuple(ops)
    raise ScheduleError("the inner program yields something that is not a step", found=repr(step), hint=STEP_HINT)
