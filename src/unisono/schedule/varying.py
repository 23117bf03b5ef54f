"""Numbers that stand for a different value on each of many ranks.

The simulator runs the program of many ranks at once (simulator/batch.py): it passes a *varying* number as the rank.
Arithmetic with it gives other varying numbers. The functions that compose programs accept varying numbers too, and
a ``Table`` may be indexed with one. Everywhere else a rank is an ``int``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

Item = TypeVar("Item")


class Varying:
    """A number, or a range of numbers, that differs between ranks."""

    __slots__ = ()

    def adapt(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a copy of an author's function that can work with varying numbers."""
        raise NotImplementedError

    def look_up(self, what: Any, table: Sequence[Any]) -> Any:
        """Return the entries ``what`` of a table, where ``what`` or the entries are varying."""
        raise NotImplementedError

    def span(self, width: int) -> Any:
        """Return the ``width`` numbers from this one on."""
        raise NotImplementedError

    def among(self, numbers: Sequence[int]) -> bool:
        """Return whether this number is one of ``numbers``."""
        raise NotImplementedError

    def position(self, numbers: Sequence[int]) -> Any:
        """Return the position of this number in ``numbers``."""
        raise NotImplementedError


class Table(tuple[Item, ...]):
    """A tuple that may be indexed with a varying number, and searched for one."""

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, Varying):
            return index.look_up(index, self)
        return super().__getitem__(index)

    def __contains__(self, item: object) -> bool:
        return item.among(self) if isinstance(item, Varying) else super().__contains__(item)  # type: ignore[arg-type]

    def index(self, item: Any, *limits: Any) -> Any:
        """Return the position of an item."""
        return item.position(cast("Any", self)) if isinstance(item, Varying) else super().index(item, *limits)


def span(first: Any, width: int) -> Any:
    """Return the numbers from ``first`` on: a range, or a varying one."""
    return first.span(width) if isinstance(first, Varying) else range(first, first + width)


def varying_of(what: Any, table: Sequence[Any]) -> Varying | None:
    """Return a varying number among an index and the entries of a table; None if there is none."""
    if isinstance(what, Varying):
        return what
    if table and isinstance(table[0], Varying):
        return table[0]
    if type(what) is not int and type(what) is not range and isinstance(what, Sequence):
        return next((each for each in what if isinstance(each, Varying)), None)
    return None
