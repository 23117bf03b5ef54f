"""Finds a value by its name, with an error that names the nearest one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from unisono.errors import UsageError
from unisono.message import Message, Template, listed
from unisono.planner import messages

Value = TypeVar("Value")


def choose(name: str, known: Mapping[str, Value], error: Template) -> Value:
    """Return ``known[name]``; raise UsageError with the template ``error`` if there is none."""
    if name not in known:
        hint = suggestion(name, known, messages.NAMES_LISTED())
        raise UsageError(error(name=name[:40], known=listed(known), hint=hint))
    return known[name]


def suggestion(name: str, known: Iterable[str], otherwise: Message) -> Message:
    """Return a hint: the known name that is nearest, or ``otherwise`` where none is near."""
    near = get_close_matches(name, known, n=1)
    return messages.MEANT_MODEL(near=near[0]) if near else otherwise
