"""Integers that differ between the ranks of a batch (schedule/varying.py), computed as late as possible.

A ring of 100,000 ranks names 400,000 chunks per rank, so a program cannot compute 100,000 values for each of them. A
number is therefore kept as a formula in *atoms*, arrays with one value per rank::

    add + c1*atom1 + c2*atom2 + ... + (inner_add + d1*atom1 + ...) % modulus

Sums, differences, products with constants and remainders stay formulas. Every other operation makes a new atom, whose
values are computed when they are needed: for a comparison, or at the end of the program for the peers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from unisono.schedule.varying import Varying

if TYPE_CHECKING:
    from unisono.simulator.batch import Batch

Terms = tuple[tuple[int, int], ...]  # (number of an atom, coefficient), sorted, without coefficients 0
Values = Any  # an integer array with one entry per rank


class Number(Varying):
    """An integer that differs between the ranks of a batch."""

    __slots__ = ("add", "batch", "inner", "inner_add", "modulus", "terms")

    def __init__(self, batch: Batch, terms: Terms, add: int, inner: Terms, inner_add: int, modulus: int) -> None:
        self.batch, self.terms, self.add = batch, terms, add
        self.inner, self.inner_add, self.modulus = inner, inner_add, modulus  # modulus 0: no remainder

    __hash__ = None  # type: ignore[assignment]  # a dictionary cannot find what differs between ranks

    @property
    def key(self) -> tuple[Any, ...]:
        """The formula; numbers with the same formula are equal on every rank."""
        return (self.terms, self.add, self.inner, self.inner_add, self.modulus)

    def values(self, chosen: Values = None) -> Values:
        """Compute the number for each rank, or for the ranks with the indices ``chosen``."""
        found = self.batch.total(self.terms, self.add, chosen)
        if self.modulus:
            found = found + self.batch.total(self.inner, self.inner_add, chosen) % self.modulus
        return found

    def bounds(self) -> tuple[int, int]:
        """Return limits of the values, without computing all of them."""
        low, high = self.batch.limits(self.terms)
        if self.modulus:  # remainders are multiples of a common divisor, plus a constant
            divisor = self.batch.divisor(self.inner, self.modulus)
            least = self.inner_add % divisor
            low, high = low + least, high + self.modulus - divisor + least
        return low + self.add, high + self.add

    # --- formulas

    def __add__(self, other: Any) -> Any:
        if type(other) is int:
            return Number(self.batch, self.terms, self.add + other, self.inner, self.inner_add, self.modulus)
        if isinstance(other, Number):
            if self.modulus and other.modulus:
                other = other.as_atom()
            part = self if self.modulus else other
            terms = _sum(self.terms, other.terms)
            if not terms and not part.modulus:
                return self.add + other.add
            return Number(self.batch, terms, self.add + other.add, part.inner, part.inner_add, part.modulus)
        return self + int(other) if isinstance(other, bool) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if type(other) is int:
            return Number(self.batch, self.terms, self.add - other, self.inner, self.inner_add, self.modulus)
        if isinstance(other, Number):
            if other.modulus and (self.inner, self.inner_add, self.modulus) == (
                other.inner, other.inner_add, other.modulus,
            ):  # fmt: skip
                without = Number(self.batch, self.terms, self.add, (), 0, 0)
                return _plain(without + Number(self.batch, _scaled(other.terms, -1), -other.add, (), 0, 0))
            return self + (-other)
        return NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Number:
        return self

    def __mul__(self, other: Any) -> Any:
        if type(other) is not int:
            return self._operation(operator.mul, other)
        if other == 0:
            return 0
        if self.modulus and other < 0:
            return self.as_atom() * other
        return Number(
            self.batch, _scaled(self.terms, other), self.add * other,
            _scaled(self.inner, other), self.inner_add * other, self.modulus * other,
        )  # fmt: skip

    __rmul__ = __mul__

    def __lshift__(self, other: Any) -> Any:
        return self * (1 << other) if type(other) is int else self._operation(operator.lshift, other)

    def __mod__(self, other: Any) -> Any:
        if type(other) is not int or other <= 0:
            return self._operation(operator.mod, other)
        batch = self.batch
        if not self.modulus:
            terms, add = self.terms, self.add
        elif not self.terms and self.modulus % other == 0:
            terms, add = self.inner, self.inner_add + self.add
        else:
            return self.as_atom() % other
        terms = batch.remainders(terms, other)
        return Number(batch, (), 0, terms, add % other, other) if terms else add % other

    def __floordiv__(self, other: Any) -> Any:
        if type(other) is int and other > 0 and not self.modulus and all(each % other == 0 for _, each in self.terms):
            terms = tuple((atom, each // other) for atom, each in self.terms)
            return Number(self.batch, terms, self.add // other, (), 0, 0)
        return self._operation(operator.floordiv, other)

    def as_atom(self) -> Number:
        """Return the same number as an atom."""
        return self.batch.atom(("number", self.key), self.values)

    # --- operations that make an atom

    def _operation(self, function: Callable[[Any, Any], Any], other: Any) -> Any:
        return self._binary(function, self, other)

    def _binary(self, function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
        if not all(isinstance(each, Number) or type(each) is int for each in (left, right)):
            return NotImplemented
        if function in (operator.mod, operator.floordiv) and (right == 0):
            raise ZeroDivisionError
        if function in (operator.lshift, operator.rshift) and (right < 0 or right > 40):
            raise ValueError(right)
        return self.batch.atom(
            (function.__name__, _key(left), _key(right)), lambda: function(_values(left), _values(right))
        )

    def __rmod__(self, other: Any) -> Any:
        return self._binary(operator.mod, other, self)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._binary(operator.floordiv, other, self)

    def __rlshift__(self, other: Any) -> Any:
        return self._binary(operator.lshift, other, self)

    def __rshift__(self, other: Any) -> Any:
        return self._binary(operator.rshift, self, other)

    def __rrshift__(self, other: Any) -> Any:
        return self._binary(operator.rshift, other, self)

    def __xor__(self, other: Any) -> Any:
        return self._binary(operator.xor, self, other)

    def __and__(self, other: Any) -> Any:
        return self._binary(operator.and_, self, other)

    def __or__(self, other: Any) -> Any:
        return self._binary(operator.or_, self, other)

    __rxor__, __rand__, __ror__ = __xor__, __and__, __or__

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __invert__(self) -> Any:
        return -self - 1

    def __abs__(self) -> Any:
        return self.batch.atom(("abs", self.key), lambda: np.abs(self.values()))

    def bit_length(self) -> Any:
        """Return the number of bits, as ``int.bit_length`` does."""
        return self.batch.atom(
            ("bit_length", self.key), lambda: np.frexp(np.abs(self.values()).astype(np.float64))[1].astype(np.int64)
        )

    # --- decisions: the answer must be the same on all ranks, so the batch keeps those that agree

    def _compare(self, compare: Callable[[Any, Any], Any], other: Any) -> Any:
        if not isinstance(other, Number) and type(other) is not int:
            return (
                int(other) == other and self._compare(compare, int(other)) if type(other) is bool else NotImplemented
            )
        difference = self - other
        if type(difference) is int:
            return compare(difference, 0)
        low, high = difference.bounds()
        if compare in (operator.eq, operator.ne):
            if not low <= 0 <= high:
                return compare is operator.ne
        elif compare(low, 0) == compare(high, 0):
            return compare(low, 0)
        return self.batch.decide(compare(difference.values(), 0))

    def __eq__(self, other: object) -> Any:
        return self._compare(operator.eq, other)

    def __ne__(self, other: object) -> Any:
        return self._compare(operator.ne, other)

    def __lt__(self, other: Any) -> Any:
        return self._compare(operator.lt, other)

    def __le__(self, other: Any) -> Any:
        return self._compare(operator.le, other)

    def __gt__(self, other: Any) -> Any:
        return self._compare(operator.gt, other)

    def __ge__(self, other: Any) -> Any:
        return self._compare(operator.ge, other)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __index__(self) -> int:
        return self.batch.settle(self.values())

    __int__ = __index__

    def __str__(self) -> str:
        return str(self.__index__())

    def __format__(self, form: str) -> str:
        return format(self.__index__(), form)

    # --- tables

    def adapt(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a copy of an author's function that can work with varying numbers."""
        return self.batch.adapt(function)

    def look_up(self, what: Any, table: Any) -> Any:
        """Return entries of a table; see Varying."""
        return self.batch.look_up(what, table)

    def span(self, width: int) -> Span:
        """Return the ``width`` numbers from this one on."""
        return Span(self, width)

    def among(self, numbers: Any) -> bool:
        """Return whether this number is one of ``numbers``."""
        self._refuse_varying(numbers)
        return self.batch.decide(np.isin(self.values(), np.fromiter(numbers, np.int64)))

    def position(self, numbers: Any) -> Any:
        """Return the position of this number in ``numbers``."""
        self._refuse_varying(numbers)
        if not self.among(numbers):
            raise ValueError(numbers)
        listed = np.fromiter(numbers, np.int64)
        order = np.argsort(listed, kind="stable")
        return self.batch.atom(
            ("position", self.batch.number_of(numbers), self.key),
            lambda: order[np.searchsorted(listed[order], self.values())],
        )

    def _refuse_varying(self, numbers: Any) -> None:
        if any(isinstance(each, Varying) for each in numbers):
            raise NotImplementedError


class Span(Varying):
    """Consecutive numbers that begin at a varying one: a range that differs between ranks."""

    __slots__ = ("start", "width")

    def __init__(self, start: Number, width: int) -> None:
        self.start, self.width = start, width

    def __len__(self) -> int:
        return self.width

    def __iter__(self) -> Iterator[Any]:
        return (self.start + index for index in range(self.width))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            chosen = range(self.width)[index]
            return Span(self.start + chosen.start, len(chosen)) if chosen and chosen.step == 1 else [
                self.start + each for each in chosen
            ]  # fmt: skip
        if not -self.width <= index < self.width:
            raise IndexError
        return self.start + (index if index >= 0 else index + self.width)

    def __contains__(self, number: Any) -> bool:
        return bool(self.start <= number) and bool(number < self.start + self.width)

    def index(self, number: Any) -> Any:
        """Return the position of a number."""
        if number not in self:
            raise ValueError(number)
        return number - self.start

    def look_up(self, what: Any, table: Any) -> Any:
        """Return entries of a table; see Varying."""
        return self.start.batch.look_up(what, table)


def _key(number: Any) -> Any:
    return number.key if isinstance(number, Number) else number


def _values(number: Any) -> Any:
    return number.values() if isinstance(number, Number) else number


def _plain(number: Any) -> Any:
    """Return an int where a formula has no atoms left."""
    if isinstance(number, Number) and not number.terms and not number.modulus:
        return number.add
    return number


def _scaled(terms: Terms, factor: int) -> Terms:
    return tuple((atom, each * factor) for atom, each in terms)


def _sum(left: Terms, right: Terms) -> Terms:
    if not left or not right:
        return left or right
    total = dict(left)
    for atom, factor in right:
        total[atom] = total.get(atom, 0) + factor
    return tuple(sorted((atom, factor) for atom, factor in total.items() if factor))
