"""Explains why no rank can continue: one waits for a rank that has finished, or several wait in a cycle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from unisono.errors import DeadlockError, UnmatchedError
from unisono.message import join
from unisono.schedule import network_messages as messages
from unisono.schedule.ops import SEND, Op
from unisono.schedule.schedule import Schedule

LONGEST_CYCLE = 8  # ranks that are listed


@dataclass(slots=True)
class Position:
    """The op in which a rank waits, and the index of its step; without an op the rank has finished."""

    step: int = -1
    op: Op | None = None


def explain_standstill(
    schedule: Schedule, depth: int | None, positions: Sequence[Position]
) -> UnmatchedError | DeadlockError:
    """Return the error that says for which message or in which cycle the ranks wait."""
    peer_of = {rank: cast("int", at.op.other) for rank, at in enumerate(positions) if at.op is not None}
    for rank, peer in peer_of.items():
        if peer not in peer_of:
            return _finished_peer(schedule, depth, positions, rank, peer)
    rank = next(iter(peer_of))
    path: list[int] = []
    while rank not in path:
        path.append(rank)
        rank = peer_of[rank]
    return _deadlock(schedule, depth, positions, path[path.index(rank) :], peer_of)


def _finished_peer(
    schedule: Schedule, depth: int | None, positions: Sequence[Position], rank: int, peer: int
) -> UnmatchedError:
    op, steps = cast("Op", positions[rank].op), positions[peer].step + 1
    if op.kind == SEND:
        what, add = messages.FINISHED_WITHOUT_RECEIVING, messages.ADD_RECV
        expected = messages.RECEIVE_FOR_EACH(peer=peer, kind=op.kind, rank=rank)
        found = messages.ENDED_AND_FULL(rank=peer, steps=steps, depth=depth)
    else:
        what, add = messages.FINISHED_WITHOUT_SENDING, messages.ADD_SEND
        expected = messages.SEND_FOR_EACH(peer=peer, kind=op.kind, rank=rank)
        found = messages.ENDED_AFTER(rank=peer, steps=steps)
    return UnmatchedError(
        what(rank=peer), algorithm=schedule.label, size=schedule.size, rank=rank, step=positions[rank].step, op=op,
        expected=expected, found=found, hint=add(rank=peer),
    )  # fmt: skip


def _deadlock(
    schedule: Schedule, depth: int | None, positions: Sequence[Position], cycle: list[int], peer_of: dict[int, int]
) -> DeadlockError:
    waits = [
        messages.WAITS_FOR(rank=rank, step=positions[rank].step + 1, peer=peer_of[rank], op=positions[rank].op)
        for rank in cycle[:LONGEST_CYCLE]
    ]
    if len(cycle) > LONGEST_CYCLE:
        waits.append(messages.AND_MORE(count=len(cycle) - LONGEST_CYCLE))
    first = cycle[0]
    full = any(cast("Op", positions[rank].op).kind == SEND for rank in cycle)
    return DeadlockError(
        messages.DEADLOCK_AT_DEPTH(count=len(cycle), depth=depth) if full else messages.DEADLOCK(count=len(cycle)),
        algorithm=schedule.label, size=schedule.size, rank=first, step=positions[first].step, op=positions[first].op,
        expected=messages.ALL_FINISH(), found=join(waits),
        hint=messages.RECEIVE_FIRST() if full else messages.SEND_FIRST(),
    )  # fmt: skip
