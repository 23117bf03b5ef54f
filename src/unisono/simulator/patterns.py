"""Finds ranks whose programs are the same but for the numbers of their slots.

The compiler merges a receive with the send of the same slots, and drops stores that are never read. So ranks have the
same compiled program if a renaming of slots turns the program of one into that of the other. Two methods show it:

- *Turning back*: where all items are in families ``start + (turn + k) % modulus``, subtracting ``turn`` renames slots
  so that the ops are the same on all ranks. The cost does not depend on the number of steps: a ring has one family.
- *Comparing coverage*: each slot is described by the set of ops that name it. Ranks with the same descriptions, in
  the same number of slots, have programs that a renaming turns into each other. The cost is ranks times items.

The order of slots in a message matters only where the compiler compares it with the next message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from unisono.schedule.frozen import CODES
from unisono.schedule.ops import COMBINE, COPY, RECV, RECV_REDUCE, SEND
from unisono.simulator.hashing import mixed
from unisono.simulator.numbers import Values
from unisono.simulator.recording import LOCAL, Recording

SENDING, RECEIVING, ADDING, COPYING, COMBINING = (
    CODES[SEND], CODES[RECV], CODES[RECV_REDUCE], CODES[COPY], CODES[COMBINE],
)  # fmt: skip
MOST_COMPARED = 60_000_000  # boundaries of items on all ranks
BLOCK = 1 << 22  # boundaries that are compared at a time


class Held(NamedTuple):
    """Slots that hold the input or the result of each rank: the first one, and how many there are."""

    first: Values
    width: int


def patterns(recording: Recording, held: Sequence[Held], paired: bool) -> Values | None:
    """Return a number for each rank, equal where programs are the same but for their slots; None if too costly.

    ``paired``: it matters which source of a local op belongs to which target. It does not where the compiler keeps
    all of them, or none.
    """
    if _turns_back(recording, held):
        return np.zeros(len(recording.ranks), np.uint64)
    return _coverage(recording, held, paired)


class _Interval:
    """Consecutive slots on each rank; where there is a modulus, items that turn inside them."""

    def __init__(self, first: Values, width: int, turn: Values = 0, modulus: int = 0, item: int = 0) -> None:
        self.first, self.width, self.turn, self.modulus, self.item = first, width, turn, modulus, item
        self.turned_back = False

    @property
    def is_fixed(self) -> bool:
        return _same(self.first) and (not self.modulus or _same(self.turn % self.modulus))


def _turns_back(recording: Recording, held: Sequence[Held]) -> bool:
    """Return whether a renaming of slots makes all items the same on all ranks."""
    intervals = [_Interval(each.first, each.width) for each in held if each.width]
    for family, chosen in recording.by_family():
        offset, width = recording.offset[chosen], recording.width[chosen]
        if family.modulus:
            if not family.is_aligned(offset, width):
                return False
            intervals.append(_Interval(family.start, family.modulus, family.turn, family.modulus, int(width[0])))
        else:
            pairs = np.unique(np.stack([offset, width], axis=1), axis=0)
            if len(pairs) * len(recording.ranks) > BLOCK and not _same(family.start):
                return False
            start = family.start[:1] if _same(family.start) else family.start
            intervals += [_Interval(start + first, int(wide)) for first, wide in pairs.tolist()]
    turning = sorted((each for each in intervals if each.modulus), key=lambda each: -each.modulus)
    if not turning:
        return all(each.is_fixed for each in intervals)
    if len(intervals) * len(turning) * len(recording.ranks) > MOST_COMPARED:
        return False
    for family_ in turning:
        if not _same(family_.turn % family_.modulus) and not _turn_back(family_, intervals):
            return False
        family_.turned_back = True
    return all(each.is_fixed for each in intervals)


def _turn_back(turning: _Interval, intervals: list[_Interval]) -> bool:
    """Rename the slots of one interval so that its items do not turn; return False if that tears another one."""
    low, high = turning.first, turning.first + turning.width
    turn = turning.turn % turning.modulus
    for other in intervals:
        if other is turning:
            continue
        apart = (other.first + other.width <= low) | (other.first >= high)
        around = (other.first <= low) & (other.first + other.width >= high)
        inside = (other.first >= low) & (other.first + other.width <= high)
        if not (apart | around | inside).all():
            return False
        if other.modulus and (around & ~apart).any():
            if not (around & inside).all():  # a wider family: this one must lie in one of its items
                if not other.turned_back or inside.any():
                    return False
                begin = (low - other.first) % other.item
                if (begin + turning.width > other.item).any():
                    return False
            elif other.turned_back and other.width == turning.width:
                return False
            else:
                other.turn = other.turn - turn
            continue
        moving = inside & ~around
        if moving.any():
            moved = low + (other.first - low - turn) % turning.modulus
            if (moved + other.width > high)[moving].any():
                return False
            other.first = np.where(moving, moved, other.first)
    turning.turn = np.zeros(1, np.int64)
    return True


def _coverage(recording: Recording, held: Sequence[Held], paired: bool) -> Values | None:
    """Describe the slots of each rank by the ops that name them; None if there are too many."""
    ops = _without_order(recording)[recording.item_op]
    weights = mixed(ops * 2 + recording.item_other + 1) * np.uint64(2) + np.uint64(1)
    local = (recording.column[recording.item_op] == LOCAL) & paired
    weights = mixed(weights + np.where(local, _positions(recording), 0).astype(np.uint64))
    keys = np.stack([recording.family, recording.offset, recording.width], axis=1)
    keys, inverse = np.unique(keys, axis=0, return_inverse=True)
    pairs = list(_neighbours(recording, inverse.reshape(-1)))
    total = np.zeros(len(keys), np.uint64)
    np.add.at(total, inverse.reshape(-1), weights)
    count, columns = len(recording.ranks), len(keys) + len(held)
    if count * columns * 2 > MOST_COMPARED:
        return None
    widths = np.concatenate([keys[:, 2], [each.width for each in held]]).astype(np.int64)
    extra = mixed(np.arange(len(held)) + (1 << 40))
    weight = np.concatenate([total, extra])
    found = np.empty(count, np.uint64)
    rows = max(1, BLOCK // max(1, 2 * columns))
    for begin in range(0, count, rows):
        part = slice(begin, min(begin + rows, count))
        starts = np.empty((part.stop - begin, columns), np.int64)
        for column, (number, offset, _) in enumerate(keys.tolist()):
            starts[:, column] = recording.families[number].slots(offset, part)
        for column, each in enumerate(held):
            starts[:, len(keys) + column] = each.first[part]
        found[part] = _described(starts, widths, weight)
        for number, (first, second) in enumerate(pairs):
            same = (starts[:, first] == starts[:, second]).all(axis=1)
            found[part] += np.where(same, mixed(number + (1 << 41)), np.uint64(0))
    return found


def _described(starts: Values, widths: Values, weight: Values) -> Values:
    """Return a number for each row: slots that the same items cover are counted together."""
    edges = np.concatenate([starts, starts + widths], axis=1)
    order = np.argsort(edges, axis=1, kind="stable")
    edges = np.take_along_axis(edges, order, axis=1)
    covering = np.cumsum(np.concatenate([weight, np.uint64(0) - weight])[order], axis=1, dtype=np.uint64)
    lengths = np.diff(edges, axis=1).astype(np.uint64)
    described = np.where(covering[:, :-1] == 0, np.uint64(0), mixed(covering[:, :-1]))
    return (described * lengths).sum(axis=1, dtype=np.uint64)


def _without_order(recording: Recording) -> Values:
    """Return a number for each op: the same for those in a row whose order does not matter to the compiler.

    Receives that only overwrite slots are never dropped, and merged only with a send of the same slots, which
    ``_neighbours`` tells. Ops that add to one slot, one after another, are all dropped or all kept.
    """
    kinds = recording.kinds
    begins = np.flatnonzero(np.diff(kinds.astype(np.int64), prepend=-1))
    row = np.repeat(begins, np.diff(begins, append=len(kinds)))
    found = np.where(kinds == RECEIVING, row, np.arange(len(kinds)))
    for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(kinds)], strict=True):
        if kinds[begin] == COMBINING and end - begin > 1 and _have_one_target(recording, begin, end):
            found[begin:end] = begin
    return found


def _have_one_target(recording: Recording, begin: int, end: int) -> bool:
    """Return whether local ops have the same target on every rank, one item each."""
    first, last = np.searchsorted(recording.item_op, [begin, end])
    items = first + np.flatnonzero(recording.item_other[first:last])
    if len(items) != end - begin or last - first != 2 * (end - begin):
        return False
    if (recording.width[first:last] != recording.width[first]).any():
        return False
    targets = np.unique(np.stack([recording.family[items], recording.offset[items]], axis=1), axis=0).tolist()
    slots = [recording.families[number].slots(offset) for number, offset in targets]
    return all(bool((each == slots[0]).all()) for each in slots[1:])


def _neighbours(recording: Recording, keys: Values) -> Iterator[tuple[Values, Values]]:
    """Yield the items of ops that the compiler merges with the next one if both name the same slots in order."""
    begins = np.searchsorted(recording.item_op, np.arange(len(recording.kinds) + 1))
    first, second = recording.kinds[:-1], recording.kinds[1:]
    merged = (second == SENDING) & (first != COPYING) & (first != COMBINING) | (first == ADDING) & (second == ADDING)
    merged &= np.diff(begins)[:-1] == np.diff(begins)[1:]
    for op in np.flatnonzero(merged).tolist():
        items, following = slice(begins[op], begins[op + 1]), slice(begins[op + 1], begins[op + 2])
        if (recording.width[items] == recording.width[following]).all() and (keys[items] != keys[following]).any():
            yield keys[items], keys[following]


def _positions(recording: Recording) -> Values:
    """Return the position of each item in its op."""
    key = recording.item_op * 2 + recording.item_other
    begins = np.flatnonzero(np.diff(key, prepend=-1))
    return np.arange(len(key)) - np.repeat(begins, np.diff(begins, append=len(key)))


def _same(values: Any) -> bool:
    return bool((values == values[0]).all()) if np.ndim(values) else True
