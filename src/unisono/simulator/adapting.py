"""Lets a program call ``range`` and index the slots of a collective with varying numbers.

``range(rank, rank + 4)`` asks its arguments for an ``int``, which a number that differs between ranks does not have.
A batch therefore runs a copy of the author's function that finds other builtins under the same names. The copy has
the same code; the author's module is not changed.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any

from unisono.collectives import Collective
from unisono.simulator.numbers import Number, Span

ALGORITHMS = "unisono.algorithms."


class _Ranges(type):
    """Makes ``range`` in a copied function usable as a type, too."""

    def __call__(cls, *arguments: Any) -> Any:
        if not any(isinstance(each, Number) for each in arguments):
            return builtins.range(*arguments)
        start, stop = (0, arguments[0]) if len(arguments) == 1 else arguments[:2]
        if len(arguments) == 3 and arguments[2] != 1:
            raise NotImplementedError
        width = stop - start
        if isinstance(width, Number):
            width = width.__index__()
        if width <= 0:
            return builtins.range(0)
        return start.span(width) if isinstance(start, Number) else builtins.range(start, start + width)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, builtins.range | Span)


class _Range(metaclass=_Ranges):
    pass


class _Slots:
    """A row of slots, as ``Collective.slots`` returns it, that may be indexed with a varying number."""

    def __init__(self, row: builtins.range) -> None:
        self.row, self.start, self.stop = row, row.start, row.stop

    def __len__(self) -> int:
        return len(self.row)

    def __iter__(self) -> Iterator[int]:
        return iter(self.row)

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, Number):
            return self.row[index]
        if not (index >= 0 and index < len(self.row)):
            raise IndexError
        return index + self.start


class _AdaptedCollective:
    """A collective whose slots may be indexed with varying numbers."""

    def __init__(self, collective: Collective) -> None:
        self.collective = collective

    def __getattr__(self, name: str) -> Any:
        return getattr(self.collective, name)

    def slots(self, chunks: int) -> tuple[_Slots, ...]:
        return tuple(map(_Slots, self.collective.slots(chunks)))


class Adapter:
    """Copies functions, and the functions of their modules that they call."""

    def __init__(self) -> None:
        self._namespaces: dict[int, dict[str, Any]] = {}

    def adapt(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a copy of an author's function; anything but a plain function is returned as it is."""
        if type(function) is not FunctionType:
            return function
        copied = FunctionType(
            function.__code__, self._namespace(function.__globals__), function.__name__, function.__defaults__,
            function.__closure__,
        )  # fmt: skip
        copied.__kwdefaults__ = function.__kwdefaults__
        return copied

    def _namespace(self, names: Mapping[str, Any]) -> dict[str, Any]:
        known = self._namespaces.get(id(names))
        if known is not None:
            return known
        adapted = self._namespaces[id(names)] = dict(names)
        adapted.setdefault("range", _Range)
        module = names.get("__name__")
        for name, value in names.items():
            if type(value) is FunctionType and (
                value.__module__ == module or value.__module__.startswith(ALGORITHMS)
            ):
                adapted[name] = self.adapt(value)
            elif isinstance(value, Collective) and not value.in_place:
                adapted[name] = _AdaptedCollective(value)
        return adapted
