"""Walks a public API and finds the parameters that its docstrings do not describe.

A docstring describes a parameter by its name in double backquotes, such as ````timeout````. The parameters of a
constructor are described in the docstring of the class or in that of ``__init__``; ``help()`` of a class shows both,
also those that it inherits.
"""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any

Entry = tuple[str, Any, str]  # a name, a function or class, and its docstring


def entries(owner: Any, names: Iterable[str]) -> Iterator[Entry]:
    """Yield an entry for each of these functions and classes of a module, and for each method of the classes."""
    for name in names:
        value = getattr(owner, name)
        if inspect.isclass(value):
            yield from entries_of_class(name, value)
        elif inspect.isroutine(value):
            yield name, value, inspect.getdoc(value) or ""


def entries_of_class(name: str, kind: type) -> Iterator[Entry]:
    """Yield an entry for a class and one for each of its public methods that Unisono defines."""
    own = vars(kind).get("__doc__") or ""
    constructor = getattr(kind.__init__, "__doc__", None) if is_ours(kind.__init__) else None
    yield name, kind, f"{own}\n{constructor or ''}" if own else ""
    for member, method in methods_of(kind).items():
        yield f"{name}.{member}", method, inspect.getdoc(method) or ""


def methods_of(kind: type) -> dict[str, Any]:
    """Return the public methods that Unisono defines in a class or its bases."""
    names = [name for base in kind.__mro__ if is_ours(base) for name in vars(base) if not name.startswith("_")]
    found = {name: inspect.getattr_static(kind, name) for name in names}
    return {name: getattr(kind, name) for name, value in found.items() if is_method(value)}


def is_ours(value: Any) -> bool:
    """Return whether Unisono defines a function or class."""
    return (getattr(value, "__module__", None) or "").startswith("unisono")


def is_method(value: Any) -> bool:
    """Return whether an attribute of a class is a method."""
    return inspect.isfunction(value) or isinstance(value, classmethod | staticmethod)


def undescribed(function: Any, docstring: str, passed_on: frozenset[str] = frozenset()) -> list[str]:
    """Return the parameters that a docstring does not describe; those in ``passed_on`` need no description."""
    if inspect.isclass(function) and issubclass(function, enum.Enum):
        return []  # the constructor of an enumeration is Python's
    described = set(re.findall(r"``(\w+)``", docstring)) | passed_on | {"self"}
    parameters = inspect.signature(function).parameters
    return [name for name in parameters if name not in described and not name.startswith("_")]
