"""Records the programs of all ranks of a schedule, many ranks at once where that is possible.

*Path*: the lines that a program executes for a rank. Ranks on the same path form one recording. Where a program does
something that only works with an ``int`` (a rank as the key of a dictionary), or where nearly every rank has its own
path, ranks are recorded one by one, and those with the same kinds of ops form one recording.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from unisono.schedule import Schedule
from unisono.schedule.frozen import CODES
from unisono.schedule.ops import COMBINE, COPY, SEND, Op
from unisono.simulator.batch import Batch
from unisono.simulator.numbers import Values
from unisono.simulator.recording import LOCAL, Family, Recorder, Recording

FIRST_PATHS = 8  # that are followed whatever they cover
MOST_PATHS = 128  # after which ranks are recorded one by one


def record(schedule: Schedule) -> list[Recording]:
    """Record all ranks of a schedule; errors of the author's program are those of ``Schedule.program``."""
    found: list[Recording] = []
    pending: list[Values] = [np.arange(schedule.size)]
    covered = 0
    while pending:
        if len(found) >= FIRST_PATHS and covered * MOST_PATHS < schedule.size * len(found):
            break
        batch = Batch(pending.pop())
        try:
            recording = Recorder(batch).run(schedule.make, schedule.step_limit)
            check(schedule, recording)
        except Exception:  # whatever a batch cannot do, or an error that a single rank will show
            pending.append(batch.ranks)
            pending += batch.left
            break
        found.append(recording)
        covered += len(recording.ranks)
        pending += batch.left
    if pending:
        found += record_one_by_one(schedule, np.sort(np.concatenate(pending)))
    return found


def record_one_by_one(schedule: Schedule, ranks: Values) -> list[Recording]:
    """Run the program of each rank, and put ranks with the same kinds of ops together."""
    groups: dict[Any, list[_Single]] = {}
    for rank in ranks.tolist():
        try:
            single = _Single(rank, schedule.make(rank), schedule.step_limit)
        except Exception:
            for _ in schedule.program(rank):
                pass  # it raises an error that names the rank and the step
            raise
        groups.setdefault(single.key, []).append(single)
    found = [_together(members) for members in groups.values()]
    for recording in found:
        check(schedule, recording)
    return found


class _Single:
    """The ops of one rank."""

    def __init__(self, rank: int, program: Iterable[Any], limit: int) -> None:
        self.rank = rank
        self.peers: list[int] = []
        self.starts: list[int] = []
        kinds, steps = bytearray(), []
        widths, item_op, item_other = [], [], bytearray()

        def add_items(chunks: Any, other: int) -> None:
            if type(chunks) is int:
                self.starts.append(chunks)
                widths.append(1)
            elif type(chunks) is range and chunks.step == 1:
                self.starts.append(chunks.start)
                widths.append(len(chunks))
            else:
                for each in chunks:
                    add_items(each, other)
                return
            item_op.append(len(kinds))
            item_other.append(other)

        number = 0
        for count, yielded in enumerate(program):
            if count == limit:
                raise ValueError(limit)
            step = (yielded,) if type(yielded) is Op else yielded
            if not step:
                continue
            for op in sorted(step, key=_sends_first) if len(step) > 1 else step:
                kind, chunks, other = cast("tuple[str, Any, Any]", op)
                add_items(chunks, 0)
                if not item_op or item_op[-1] != len(kinds):
                    raise ValueError(op)  # it names no chunk
                if kind == COPY or kind == COMBINE:
                    add_items(other, 1)
                    other = LOCAL
                self.peers.append(other)
                kinds.append(CODES[kind])
                steps.append(number)
            number += 1
        self.kinds, self.item_other = bytes(kinds), bytes(item_other)
        self.steps, self.widths, self.item_op = tuple(steps), tuple(widths), tuple(item_op)

    @property
    def key(self) -> Any:
        return self.kinds, self.steps, self.widths, self.item_op, self.item_other


def _sends_first(op: Op) -> bool:
    return op[0] != SEND


def _together(members: list[_Single]) -> Recording:
    first = members[0]
    starts = np.array([member.starts for member in members], np.int64).reshape(len(members), -1)
    peers = np.array([member.peers for member in members], np.int64).reshape(len(members), -1)
    talking = np.flatnonzero(peers[0] != LOCAL) if peers.shape[1] else np.empty(0, np.int64)
    column = np.full(peers.shape[1], LOCAL)
    column[talking] = np.arange(len(talking))
    zero = np.zeros(len(members), np.int64)
    count = starts.shape[1]
    return Recording(
        ranks=np.array([member.rank for member in members]), kinds=np.frombuffer(first.kinds, np.uint8),
        steps=np.array(first.steps, np.int64), peers=peers[:, talking], column=column,
        item_op=np.array(first.item_op, np.int64), item_other=np.frombuffer(first.item_other, np.uint8),
        family=np.arange(count), offset=np.zeros(count, np.int64), width=np.array(first.widths, np.int64),
        families=[Family(starts[:, index], zero, 0) for index in range(count)],
    )  # fmt: skip


def check(schedule: Schedule, recording: Recording) -> None:
    """Raise an exception if an op names a rank or a slot that does not exist."""
    peers, ranks = recording.peers, recording.ranks
    wrong = ((peers < 0) | (peers >= schedule.size) | (peers == ranks[:, np.newaxis])).any(axis=1)
    for number, family in enumerate(recording.families):
        items = recording.family == number
        if not items.any():
            continue
        offset, width = recording.offset[items], recording.width[items]
        if family.modulus:
            if not family.is_aligned(offset, width):
                raise NotImplementedError
            wrong |= (family.start < 0) | (family.start + family.modulus > schedule.slots)
        else:
            wrong |= (family.start + offset.min() < 0) | (family.start + (offset + width).max() > schedule.slots)
    if wrong.any():
        for _ in schedule.program(int(ranks[np.argmax(wrong)])):
            pass
        raise IndexError
