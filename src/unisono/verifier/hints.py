"""Completes the command in the hint of an error, so that it can be pasted."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from unisono.errors import ScheduleError
from unisono.message import Message
from unisono.verifier.messages import SHOW_RANK


def with_name(
    error: ScheduleError, name: str | None, root: int | None = None, options: Mapping[str, Any] | None = None
) -> ScheduleError:
    """Return the error with the name that the user gave, the root and the options in the command of its hint."""
    hint = error.hint
    if name is None or not isinstance(hint, Message) or hint.id != SHOW_RANK.id:
        return error
    words = [name, *(["--root", f"{root}"] if root else [])]
    for option, value in (options or {}).items():
        words += ["--option", f"{option}={value}"]
    parts = {**error.parts(), "hint": SHOW_RANK(**{**hint.parameters, "name": shlex.join(words)})}
    return type(error)(error.what, **parts)
