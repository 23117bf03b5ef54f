"""Records the ops of a program that runs for a batch of ranks at once.

*Item*: consecutive slots that an op names. An op has one item or, where it lists slots, several.
*Family*: a formula without its constant. The items of a ring are all in one family, ``(rank + k) % size``.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Any

import numpy as np

from unisono.schedule.frozen import CODES
from unisono.schedule.ops import COMBINE, COPY, SEND, Op
from unisono.simulator.batch import Batch
from unisono.simulator.numbers import Number, Span, Values

FIXED = 0  # the family of slots that are the same on every rank
LOCAL = -1  # as a peer: the op stays on its rank


@dataclass
class Family:
    """Items at ``start + (turn + offset) % modulus``, or at ``start + offset`` where the modulus is 0."""

    start: Values
    turn: Values
    modulus: int

    def is_aligned(self, offsets: Values, widths: Values) -> bool:
        """Return whether the modulus cuts no item in two on any rank."""
        width = int(widths[0])
        if width == 1 and (widths == 1).all():
            return True
        aligned = (
            (widths == width).all() and self.modulus % width == 0 and (offsets % width == offsets[0] % width).all()
        )
        return bool(aligned and ((self.turn + offsets[0]) % width == 0).all())

    def remainders(self, offsets: Values) -> tuple[int, int]:
        """Return limits of ``(turn + offset) % modulus``: all are multiples of a divisor, plus a constant."""
        differences = int(np.gcd.reduce(self.turn - self.turn[0])), int(np.gcd.reduce(offsets - offsets[0]))
        divisor = gcd(self.modulus, *differences)
        least = int(self.turn[0] + offsets[0]) % divisor
        return least, self.modulus - divisor + least

    def slots(self, offset: int, part: slice = slice(None)) -> Values:
        """Return the first slot of an item on each rank, or on a part of them."""
        if self.modulus:
            return self.start[part] + (self.turn[part] + offset) % self.modulus
        return self.start[part] + offset

    def first_slots(self, offsets: Values, index: int) -> Values:
        """Return the first slots of items on the rank with this index."""
        if self.modulus:
            return self.start[index] + (self.turn[index] + offsets) % self.modulus
        return self.start[index] + offsets


@dataclass
class Recording:
    """The ops of the ranks of a batch, which differ in the values of numbers only."""

    ranks: Values
    kinds: Values  # of ops: indices into frozen.KINDS
    steps: Values  # of ops
    peers: Values  # (ranks, columns)
    column: Values  # of ops: the column of its peer, or LOCAL
    item_op: Values  # of items
    item_other: Values  # of items: whether they are the second operand of a local op
    family: Values  # of items
    offset: Values  # of items
    width: Values  # of items
    families: list[Family] = field(default_factory=list)

    def part(self, chosen: Values) -> Recording:
        """Return the recording of the ranks with these indices."""
        if len(chosen) == len(self.ranks):
            return self
        families = [Family(each.start[chosen], each.turn[chosen], each.modulus) for each in self.families]
        return replace(self, ranks=self.ranks[chosen], peers=self.peers[chosen], families=families)

    def by_family(self) -> Iterator[tuple[Family, Values]]:
        """Yield each family that has items, and their indices."""
        if not len(self.family):
            return
        order = np.argsort(self.family, kind="stable")
        numbers, starts = np.unique(self.family[order], return_index=True)
        for number, items in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
            yield self.families[number], items

    def first_slots(self, index: int) -> Values:
        """Return the first slot of each item on one rank of the recording."""
        found = np.empty(len(self.family), np.int64)
        for family, items in self.by_family():
            found[items] = family.first_slots(self.offset[items], index)
        return found


class Recorder:
    """Runs a program for a batch and records its ops."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.kinds, self.steps, self.column = bytearray(), array("q"), array("q")
        self.item_op, self.item_other = array("q"), bytearray()
        self.family, self.offset, self.width = array("q"), array("q"), array("q")
        self._families: dict[Any, int] = {((), 0, (), 0): FIXED}
        self._numbers: list[Any] = [0]  # a number of each family, with the constant 0
        self._columns: dict[Any, int] = {}
        self._peers: list[Any] = []

    def run(self, make: Callable[[Any], Any], limit: int) -> Recording:
        """Run the program; anything that a batch cannot do raises an exception of any type."""
        number = 0
        for count, yielded in enumerate(make(self.batch.rank())):
            if count == limit:
                raise NotImplementedError
            step = (yielded,) if type(yielded) is Op else yielded
            if type(step) is not tuple and type(step) is not list:
                raise TypeError(step)
            if not step:
                continue
            for op in step:
                if op[0] == SEND:
                    self._add(op, number)
            for op in step:
                if op[0] != SEND:
                    self._add(op, number)
            number += 1
        return self._finish()

    def _add(self, op: Op, step: int) -> None:
        if type(op) is not Op:
            raise TypeError(op)
        kind, chunks, other = op
        index = len(self.kinds)
        self.kinds.append(CODES[kind])
        self.steps.append(step)
        self._items(chunks, index, 0)
        if not self.item_op or self.item_op[-1] != index:
            raise ValueError(op)  # it names no chunk
        if kind == COPY or kind == COMBINE:
            self.column.append(LOCAL)
            self._items(other, index, 1)
        else:
            self.column.append(self._column(other))

    def _items(self, chunks: Any, op: int, other: int) -> None:
        if type(chunks) is Number:
            if chunks.modulus:
                key, offset = (chunks.terms, chunks.add, chunks.inner, chunks.modulus), chunks.inner_add
            else:
                key, offset = (chunks.terms, 0, (), 0), chunks.add
            family = self._families.get(key)
            if family is None:
                family = self._families[key] = len(self._numbers)
                self._numbers.append(key)
            self._item(op, other, family, offset, 1)
        elif type(chunks) is int:
            self._item(op, other, FIXED, chunks, 1)
        elif type(chunks) is Span:
            at = len(self.width)
            self._items(chunks.start, op, other)
            self.width[at] = chunks.width
        elif type(chunks) is range and chunks.step == 1:
            self._item(op, other, FIXED, chunks.start, len(chunks))
        elif isinstance(chunks, Iterable) and not isinstance(chunks, str):
            for each in chunks:
                self._items(each, op, other)
        else:
            raise TypeError(chunks)

    def _item(self, op: int, other: int, family: int, offset: int, width: int) -> None:
        self.item_op.append(op)
        self.item_other.append(other)
        self.family.append(family)
        self.offset.append(offset)
        self.width.append(width)

    def _column(self, peer: Any) -> int:
        key: Any
        if type(peer) is Number:
            key = peer.key
        elif type(peer) is int:
            key = peer
        else:
            raise TypeError(peer)
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = len(self._peers)
            self._peers.append(peer)
        return column

    def _finish(self) -> Recording:
        batch = self.batch
        count = len(batch.ranks)
        peers = np.empty((count, len(self._peers)), np.int64)
        for column, peer in enumerate(self._peers):
            peers[:, column] = peer.values() if type(peer) is Number else peer
        families = [Family(np.zeros(count, np.int64), np.zeros(count, np.int64), 0)]
        for terms, add, inner, modulus in self._numbers[1:]:
            families.append(Family(batch.total(terms, add), batch.total(inner, 0), modulus))
        return Recording(
            ranks=batch.ranks, kinds=np.frombuffer(bytes(self.kinds), np.uint8), steps=np.array(self.steps),
            peers=peers, column=np.array(self.column), item_op=np.array(self.item_op),
            item_other=np.frombuffer(bytes(self.item_other), np.uint8), family=np.array(self.family),
            offset=np.array(self.offset), width=np.array(self.width), families=families,
        )  # fmt: skip
