"""Records the programs of all ranks of a schedule, many ranks at once where that is possible.

*Path*: the lines that a program executes for a rank. Ranks on the same path form one recording. Where a program does
something that only works with an ``int`` (a rank as the key of a dictionary), or where nearly every rank has its own
path, ranks are recorded one by one, and those with the same kinds of ops form one recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

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

    __slots__ = ("key", "peers", "rank", "starts")

    def __init__(self, rank: int, program: Iterable[Any], limit: int) -> None:
        self.rank = rank
        ops: list[Op] = []
        lengths = []
        for count, yielded in enumerate(program):
            if count == limit:
                raise ValueError(limit)
            if type(yielded) is Op:
                ops.append(yielded)
                lengths.append(1)
            elif yielded:
                ops += sorted(yielded, key=_sends_first) if len(yielded) > 1 else yielded
                lengths.append(len(yielded))
        kinds, chunks, others = zip(*ops, strict=True) if ops else ((), (), ())
        self.peers: Sequence[int] = others
        self.starts: Sequence[int] = chunks
        if set(map(type, chunks)) <= {int} and COPY not in kinds and COMBINE not in kinds:
            self.key: Any = (kinds, tuple(lengths))  # the common case: every op names one slot
            return
        items = _Items(kinds, chunks, others)
        self.starts, self.peers = items.starts, items.peers
        self.key = (kinds, tuple(lengths), tuple(items.widths), tuple(items.op), bytes(items.other))

    def items(self) -> tuple[Any, Any, Any]:
        """Return of each item: its width, its op, and whether it is the second operand of a local op."""
        if len(self.key) > 2:
            return self.key[2:]  # type: ignore[no-any-return]
        count = len(self.starts)
        return (1,) * count, range(count), bytes(count)


class _Items:
    """The items of ops that name several slots, or two rows of them."""

    def __init__(self, kinds: Sequence[str], chunks: Sequence[Any], others: Sequence[Any]) -> None:
        self.starts: list[int] = []
        self.peers: list[int] = []
        self.widths: list[int] = []
        self.op: list[int] = []
        self.other = bytearray()
        for index, (kind, named, other) in enumerate(zip(kinds, chunks, others, strict=True)):
            self._add(named, index, 0)
            if not self.op or self.op[-1] != index:
                raise ValueError(index)  # the op names no chunk
            local = kind == COPY or kind == COMBINE
            if local:
                self._add(other, index, 1)
            self.peers.append(LOCAL if local else other)

    def _add(self, named: Any, index: int, other: int) -> None:
        if type(named) is int:
            self._item(named, 1, index, other)
        elif type(named) is range and named.step == 1:
            self._item(named.start, len(named), index, other)
        else:
            for each in named:
                self._add(each, index, other)

    def _item(self, start: int, width: int, index: int, other: int) -> None:
        self.starts.append(start)
        self.widths.append(width)
        self.op.append(index)
        self.other.append(other)


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
    kinds, lengths = first.key[:2]
    widths, item_op, item_other = first.items()
    return Recording(
        ranks=np.array([member.rank for member in members]),
        kinds=np.array([CODES[each] for each in kinds], np.uint8),
        steps=np.repeat(np.arange(len(lengths)), np.array(lengths, np.int64)), peers=peers[:, talking], column=column,
        item_op=np.array(item_op, np.int64), item_other=np.frombuffer(item_other, np.uint8),
        family=np.arange(count), offset=np.zeros(count, np.int64), width=np.array(widths, np.int64),
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
            least, most = family.remainders(offset)
            wrong |= (family.start + least < 0) | (family.start + most + int(width[0]) > schedule.slots)
        else:
            wrong |= (family.start + offset.min() < 0) | (family.start + (offset + width).max() > schedule.slots)
    if wrong.any():
        for _ in schedule.program(int(ranks[np.argmax(wrong)])):
            pass
        raise IndexError
