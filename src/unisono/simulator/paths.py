"""Records the programs of all ranks of a schedule, many ranks at once where that is possible.

*Path*: the lines that a program executes for a rank. Ranks on the same path form one recording. Where a program does
something that only works with an ``int`` (a rank as the key of a dictionary), or where nearly every rank has its own
path, ranks are recorded one by one, and those with the same kinds of ops form one recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
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
    """The ops of one rank; ``key`` tells apart ranks whose ops have other kinds, steps or numbers of slots."""

    __slots__ = ("counts", "key", "peers", "rank", "starts", "widths")

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
        self.counts: Values = None  # items of each row of slots: those of an op, then those of its second operand
        self.widths: Values = None  # of items; None: 1
        if set(map(type, chunks)) <= {int} and COPY not in kinds and COMBINE not in kinds:
            self.key: Any = (kinds, tuple(lengths))  # the common case: every op names one slot
            return
        local = [kind == COPY or kind == COMBINE for kind in kinds]
        self.peers = [LOCAL if stays else other for other, stays in zip(others, local, strict=True)]
        targets = [other if stays else () for other, stays in zip(others, local, strict=True)]
        rows = list(chain.from_iterable(zip(chunks, targets, strict=True)))
        self.starts, self.widths, self.counts = _items(rows)
        if not self.counts[::2].all():
            raise ValueError(rank)  # an op names no chunk
        self.key = (kinds, tuple(lengths), self.counts.tobytes(), self.widths.tobytes())


def _items(rows: list[Any]) -> tuple[list[int], Values, Values]:
    """Return the first slots and the widths of the items in rows of slots, and the number of items of each row."""
    listed: list[Any] = [(row,) if type(row) is int else row for row in rows]
    if range not in set(map(type, rows)):
        starts = list(chain.from_iterable(listed))
        if set(map(type, starts)) <= {int}:
            return starts, np.ones(len(starts), np.int64), np.fromiter(map(len, listed), np.int64, len(listed))
    spans = [list(_spans(row)) for row in rows]
    flat = list(chain.from_iterable(spans))
    counts = np.fromiter(map(len, spans), np.int64, len(spans))
    return [start for start, _ in flat], np.array([width for _, width in flat], np.int64), counts


def _spans(named: Any) -> Iterator[tuple[int, int]]:
    """Yield the first slot and the width of each item."""
    if type(named) is int:
        yield named, 1
    elif type(named) is range and named.step == 1:
        if named:
            yield named.start, len(named)
    else:
        for each in named:
            yield from _spans(each)


def _sends_first(op: Op) -> bool:
    return op[0] != SEND


def _together(members: list[_Single]) -> Recording:
    first = members[0]
    starts = np.array([member.starts for member in members], np.int64).reshape(len(members), -1)
    peers = np.array([member.peers for member in members], np.int64).reshape(len(members), -1)
    talking = np.flatnonzero(peers[0] != LOCAL) if peers.shape[1] else np.empty(0, np.int64)
    column = np.full(peers.shape[1], LOCAL)
    column[talking] = np.arange(len(talking))
    count = starts.shape[1]
    kinds, lengths = first.key[:2]
    item_op, item_other = np.arange(count), np.zeros(count, np.uint8)
    if first.counts is not None:
        row = np.repeat(np.arange(len(first.counts)), first.counts)
        item_op, item_other = row // 2, (row % 2).astype(np.uint8)
    family, families = _families(starts)
    return Recording(
        ranks=np.array([member.rank for member in members]),
        kinds=np.array([CODES[each] for each in kinds], np.uint8),
        steps=np.repeat(np.arange(len(lengths)), np.array(lengths, np.int64)), peers=peers[:, talking], column=column,
        item_op=item_op, item_other=item_other, family=family, offset=starts[0],
        width=np.ones(count, np.int64) if first.widths is None else first.widths, families=families,
    )  # fmt: skip


def _families(starts: Values) -> tuple[Values, list[Family]]:
    """Return the family of each item: items that differ between ranks in the same way are in one."""
    differences = np.ascontiguousarray((starts - starts[:1]).T)
    found: dict[bytes, int] = {}
    numbers = np.array([found.setdefault(each.tobytes(), len(found)) for each in differences], np.int64)
    _, distinct = np.unique(numbers, return_index=True)
    zero = np.zeros(len(starts), np.int64)
    return numbers, [Family(differences[item], zero, 0) for item in distinct.tolist()]


def check(schedule: Schedule, recording: Recording) -> None:
    """Raise an exception if an op names a rank or a slot that does not exist."""
    peers, ranks = recording.peers, recording.ranks
    wrong = ((peers < 0) | (peers >= schedule.size) | (peers == ranks[:, np.newaxis])).any(axis=1)
    for family, items in recording.by_family():
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
