"""Converts a run into columns of numbers, from which a timeline is drawn.

All times are nanoseconds since the first event of the communicator. ``ops`` and ``waits`` are in the order of their
begins, ``messages`` in the order of their receipt; a message refers to the ops at its two ends by their numbers.
``details`` holds the properties that many ops share, such as all sends of rank 0 in step 2; an op refers to its entry
by number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from unisono.tracing.critical_path import What, critical_path
from unisono.tracing.matching import messages_of
from unisono.tracing.run import Call, Op, TracedCommunicator
from unisono.tracing.waiting import blames

Columns = dict[str, NDArray[np.int64]]
REASONS = ("message", "room", "entry")
HOW = ("late", "slow")
WHAT = get_args(What)


class Detail(NamedTuple):
    """The properties that several ops share."""

    kind: str
    step: int
    chunks: str
    nbytes: int
    sources: tuple[int, ...]
    to: tuple[int, ...]


@dataclass(frozen=True)
class Timeline:
    """One communicator of a run, ready to be drawn."""

    size: int
    names: list[str]  # the numbers of the ranks in the job
    missing: list[int]  # ranks without a trace
    dropped: int  # number of dropped events
    calls: list[dict[str, Any]]  # number, label, ..., begin, end; see _about
    entered: Columns  # call, rank, begin, end, background, failed: one row for each call on each rank
    details: list[Detail]
    ops: Columns  # call, rank, detail, pass, begin, end
    path: Columns  # the critical paths: call, rank, what (WHAT), op (-1: none), begin, end
    waits: Columns  # call, rank, peer, reason (REASONS), begin, end
    messages: Columns  # call, sent, received: numbers of ops
    transfers: Columns  # rank, peer, sending, tag, begin, end, bytes, number
    blames: Columns  # call, waiter, culprit, how (HOW), ns


def timeline_of(group: TracedCommunicator) -> Timeline:
    """Return the timeline of one communicator. Columns refer to calls by their index."""
    begins = [call.begin_ns for call in group.calls] + [transfer.begin_ns for transfer in group.transfers]
    zero = min(begins, default=0)
    index = {call.number: at for at, call in enumerate(group.calls)}
    ops = sorted(((at, op) for at, call in enumerate(group.calls) for op in _ops(call)), key=_begin)
    number = {id(op): at for at, (_, op) in enumerate(ops)}
    details: dict[Detail, int] = {}
    messages, path = [], []
    for at, call in enumerate(group.calls):
        found = messages_of(call)
        path += [
            (
                at,
                one.rank,
                WHAT.index(one.what),
                -1 if one.op is None else number[id(one.op)],
                one.begin_ns - zero,
                one.end_ns - zero,
            )
            for one in critical_path(call, found)
        ]
        messages += [(at, number[id(one.sent)], number[id(one.received)]) for one in found]
    waits = [
        (at, wait.rank, wait.peer, REASONS.index(wait.reason), wait.begin_ns - zero, wait.end_ns - zero)
        for at, call in enumerate(group.calls) for rank in call.ranks.values() for wait in rank.waits
    ]  # fmt: skip
    entered = [
        (at, rank.rank, rank.begin_ns - zero, rank.end_ns - zero, rank.background, rank.failed)
        for at, call in enumerate(group.calls) for rank in call.ranks.values()
    ]  # fmt: skip
    return Timeline(
        size=group.size,
        names=[group.name(rank) for rank in range(group.size)],
        missing=group.missing,
        dropped=sum(group.dropped.values()),
        calls=[_about(call, zero) for call in group.calls],
        entered=_columns("call rank begin end background failed", entered),
        ops=_columns(
            "call rank detail pass begin end",
            [
                (at, op.rank, details.setdefault(_detail(op), len(details)), op.number_of_pass, op.begin_ns - zero,
                 op.end_ns - zero)
                for at, op in ops
            ],
        ),
        details=list(details),  # after the ops, which fill it
        path=_columns("call rank what op begin end", path),
        waits=_columns("call rank peer reason begin end", sorted(waits, key=lambda wait: wait[4])),
        messages=_columns("call sent received", sorted(messages, key=lambda message: message[2])),
        transfers=_columns(
            "rank peer sending tag begin end bytes number",
            [
                (one.rank, one.peer, one.sending, one.tag, one.begin_ns - zero, one.end_ns - zero, one.nbytes,
                 one.number)
                for one in group.transfers
            ],
        ),
        blames=_columns(
            "call waiter culprit how ns",
            [(index[one.call], one.waiter, one.culprit, HOW.index(one.how), one.ns) for one in blames(group)],
        ),
    )  # fmt: skip


def _ops(call: Call) -> Iterable[Op]:
    return (op for rank in call.ranks.values() for op in rank.ops)


def _begin(one: tuple[int, Op]) -> int:
    return one[1].begin_ns


def _detail(op: Op) -> Detail:
    return Detail(op.kind, op.step, op.chunks, op.nbytes, op.sources, op.to)


def _about(call: Call, zero: int) -> dict[str, Any]:
    return {
        "number": call.number, "label": call.label, "collective": call.collective, "algorithm": call.algorithm,
        "count": call.count, "dtype": call.dtype, "bytes": call.nbytes, "op": call.op, "root": call.root,
        "codec": call.codec, "passes": call.passes, "schedule": call.schedule, "begin": call.begin_ns - zero,
        "end": call.end_ns - zero,
    }  # fmt: skip


def _columns(names: str, rows: Sequence[Sequence[int]]) -> Columns:
    named = names.split()
    table = np.array(rows, np.int64).reshape(len(rows), len(named))
    return {name: table[:, at] for at, name in enumerate(named)}
