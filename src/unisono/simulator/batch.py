"""A batch: ranks for which a program runs at once, as long as all of them take the same decisions.

The program receives a Number instead of a rank. Where it compares, branches or counts with one, and the answer
differs between the ranks, the batch keeps those ranks that agree with the answer it returns; the others are left for
another run of the program. So every rank is in exactly one batch at the end, and all ranks of a batch executed the
same lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import gcd
from typing import Any

import numpy as np

from unisono.schedule.ops import Chunks
from unisono.schedule.varying import Table, Varying
from unisono.simulator.adapting import Adapter
from unisono.simulator.numbers import Number, Span, Terms, Values


class _Atom:
    """An array with one value per rank, computed when it is needed."""

    __slots__ = ("compute", "values")

    def __init__(self, compute: Callable[[], Values], values: Values = None) -> None:
        self.compute, self.values = compute, values


class Batch:
    """The ranks that take the same decisions in one run of a program."""

    def __init__(self, ranks: Values) -> None:
        self.ranks = ranks
        self.left: list[Values] = []  # ranks that decided otherwise
        self._atoms = [_Atom(lambda: self.ranks, ranks)]
        self._adapter = Adapter()
        self._known: dict[Any, int] = {}
        self._limits: dict[Terms, tuple[int, int]] = {}
        self._divisors: dict[tuple[Terms, int], int] = {}
        self._remainders: dict[tuple[Terms, int], Terms] = {}
        self._tables: dict[int, tuple[Any, Any]] = {}  # by identity: the table (kept alive), and its progression

    def adapt(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a copy of an author's function that can work with varying numbers."""
        return self._adapter.adapt(function)

    def rank(self) -> Number:
        """Return the number that the program receives as its rank."""
        return Number(self, ((0, 1),), 0, (), 0, 0)

    def atom(self, key: Any, compute: Callable[[], Values]) -> Number:
        """Return the atom of a key; ``compute`` returns its values."""
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self._atoms)
            self._atoms.append(_Atom(compute))
        return Number(self, ((number, 1),), 0, (), 0, 0)

    def total(self, terms: Terms, add: int, chosen: Values = None) -> Values:
        """Compute a sum of atoms, for each rank or for those with the indices ``chosen``."""
        found = np.full(len(self.ranks) if chosen is None else len(chosen), add, np.int64)
        for number, factor in terms:
            values = self._values(number)
            found += factor * (values if chosen is None else values[chosen])
        return found

    def limits(self, terms: Terms) -> tuple[int, int]:
        """Return the least and the greatest sum of atoms; ranks that have left may be counted."""
        if not terms:
            return 0, 0
        found = self._limits.get(terms)
        if found is None:
            values = self.total(terms, 0)
            found = self._limits[terms] = int(values.min()), int(values.max())
        return found

    def divisor(self, terms: Terms, modulus: int) -> int:
        """Return the greatest common divisor of coefficients and modulus."""
        found = self._divisors.get((terms, modulus))
        if found is None:
            found = self._divisors[terms, modulus] = gcd(modulus, *(factor for _, factor in terms))
        return found

    def remainders(self, terms: Terms, modulus: int) -> Terms:
        """Return the terms with coefficients from 1 to modulus - 1."""
        found = self._remainders.get((terms, modulus))
        if found is None:
            found = tuple((atom, factor % modulus) for atom, factor in terms if factor % modulus)
            self._remainders[terms, modulus] = found
        return found

    def decide(self, answers: Values) -> bool:
        """Return the answer of most ranks, and leave the others for another batch."""
        agreeing = int(np.count_nonzero(answers))
        if agreeing == len(answers):
            return True
        answer = agreeing * 2 >= len(answers)
        if agreeing:
            self._keep(answers if answer else ~answers)
        return answer

    def settle(self, values: Values) -> int:
        """Return the value of the first rank as an ``int``, and leave ranks with other values for another batch."""
        value = int(values[0])
        same = values == value
        if not same.all():
            self._keep(same)
        return value

    def look_up(self, what: Any, table: Sequence[Any]) -> Any:
        """Return entries of a table: ``what`` is an index, or several, that may be varying, as may the entries."""
        if isinstance(what, Number):
            return self._entry(what, table)
        if type(what) is int:
            return table[what]
        found: list[Any] = []
        step = self._contiguous(table)
        if isinstance(what, Span) and step is not None:
            return Span(self._entry(what.start, table).start, what.width * step)
        if type(what) is range and what.step == 1 and what and step is not None:
            first = table[what[0]]
            return Span(first.start, len(what) * step) if isinstance(first, Span) else range(
                first.start, first.start + len(what) * step
            )  # fmt: skip
        for each in what:
            entry = self.look_up(each, table)
            found.extend(entry if isinstance(entry, tuple | list | range) else [entry])
        return found[0] if len(found) == 1 else tuple(found)

    def number_of(self, table: Any) -> int:
        """Return a number that identifies a table while the batch lives."""
        self._tables.setdefault(id(table), (table, None))
        return id(table)

    def _values(self, number: int) -> Values:
        atom = self._atoms[number]
        if atom.values is None:
            atom.values = atom.compute()
        return atom.values

    def _keep(self, chosen: Values) -> None:
        self.left.append(self.ranks[~chosen])
        self.ranks = self.ranks[chosen]
        for atom in self._atoms:
            if atom.values is not None:
                atom.values = atom.values[chosen]

    def _entry(self, index: Number, table: Sequence[Any]) -> Any:
        """Return one entry of a table, by a varying index."""
        self._check_bounds(index, len(table))
        known = self._tables.get(id(table))
        if known is None or known[1] is None:
            known = self._tables[id(table)] = (table, _Columns(table))
        columns: _Columns = known[1]
        if columns.kind == "number":
            if columns.step is not None:
                return index * columns.step + columns.first
            array = columns.array
            return self.atom(
                ("entry", id(table), index.key),
                lambda: self._gather(index.values(), table) if array is None else array[index.values()],
            )
        if columns.kind == "range":
            width = self.look_up(index, columns.widths)
            start = self.look_up(index, columns.starts)
            width = width if type(width) is int else self.settle(width.values())
            if width == 0:
                return range(0)
            return Span(start, width) if isinstance(start, Number) else range(start, start + width)
        if columns.kind == "sequence":
            length = self.look_up(index, columns.widths)
            length = length if type(length) is int else self.settle(length.values())
            chosen = [each if len(each) == length else None for each in table]
            filler = next(each for each in chosen if each is not None)
            rows = [filler if each is None else each for each in chosen]
            return Table(self.look_up(index, [row[column] for row in rows]) for column in range(length))
        raise NotImplementedError

    def _gather(self, index: Values, table: Sequence[Any]) -> Values:
        """Compute the entries of a table of varying numbers."""
        order = np.argsort(index, kind="stable")
        entries, starts = np.unique(index[order], return_index=True)
        found = np.empty(len(index), np.int64)
        for entry, chosen in zip(entries.tolist(), np.split(order, starts[1:]), strict=True):
            number = table[entry]
            found[chosen] = number.values(chosen) if isinstance(number, Number) else number
        return found

    def _check_bounds(self, index: Number, length: int) -> None:
        low, high = index.bounds()
        if low < 0 or high >= length:
            values = index.values()
            if values.min() < 0 or values.max() >= length:
                raise IndexError

    def _contiguous(self, table: Sequence[Any]) -> int | None:
        """Return the width of the entries of a table of ranges without gaps; None for other tables."""
        if not table or not isinstance(table[0], Span | range) or not len(table[0]):
            return None
        known = self._tables.get(id(table))
        if known is None or known[1] is None:
            known = self._tables[id(table)] = (table, _Columns(table))
        columns: _Columns = known[1]
        width = len(table[0])
        if columns.kind != "range" or not columns.same_width:
            return None
        if len(table) == 1:
            return width
        starts = self._tables.get(id(columns.starts))
        if starts is None or starts[1] is None:
            starts = self._tables[id(columns.starts)] = (columns.starts, _Columns(columns.starts))
        return width if starts[1].step == width else None


class _Columns:
    """A table, prepared for varying indices: an arithmetic progression where it is one, else an array."""

    def __init__(self, table: Sequence[Any]) -> None:
        self.first: Any = None
        self.step: int | None = None
        self.array: Values = None
        kinds = set(map(type, table))
        if kinds <= {int, Number}:
            self.kind = "number"
            self._find_progression(table, plain=Number not in kinds)
        elif kinds <= {range, Span} and all(type(each) is Span or each.step == 1 for each in table):
            self.kind = "range"
            self.starts: list[Any] = [each.start for each in table]
            self.widths: list[int] = [len(each) for each in table]
            self.same_width = len(set(self.widths)) == 1
        elif not any(issubclass(kind, Varying) for kind in kinds) and all(
            issubclass(kind, Sequence) and not issubclass(kind, str) for kind in kinds
        ):
            self.kind = "sequence"
            self.widths = [len(each) for each in table]
        else:
            self.kind = "other"

    def _find_progression(self, table: Sequence[Any], plain: bool) -> None:
        if plain:
            self.array = np.fromiter(table, np.int64, len(table))
            steps = np.diff(self.array)
            if len(steps) == 0 or (steps == steps[0]).all():
                self.first, self.step = int(table[0]), int(steps[0]) if len(steps) else 0
            return
        first = table[0]
        step = table[1] - first if len(table) > 1 else 0
        if type(step) is int and all(
            type(each) is Number and _differ_by(each, before, step) for before, each in pairwise(table)
        ):
            self.first, self.step = first, step


def _differ_by(number: Any, before: Any, step: int) -> bool:
    if number.terms == before.terms and not number.modulus and not before.modulus:
        return bool(number.add - before.add == step)
    return type(number - before) is int and number - before == step


Program = Callable[[Any], Any]
__all__ = ["Batch", "Chunks", "Program"]
