"""Finds the schedule that an argument stands for: a schedule, an algorithm, or the name of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.algorithms import messages
from unisono.algorithms.declaration import Algorithm
from unisono.algorithms.user_files import WrittenSchedule, resolve
from unisono.errors import UsageError
from unisono.schedule import Schedule

# A schedule, an algorithm, or the name of one: "ring", "all_gather/ring", "my_algo.py:zigzag".
Program = Schedule | Algorithm | WrittenSchedule | str


def schedule_of(
    program: Program,
    function: str,
    size: int | None,
    root: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> Schedule:
    """Return the schedule of a program on ``size`` ranks; ``function`` is the name of the caller, for errors."""
    options = options or {}
    if isinstance(program, Schedule):
        if root is not None or options or size not in (None, program.size):
            raise UsageError(
                messages.SCHEDULE_HAS_SIZE(function=function, algorithm=program.label, size=program.size)
            )
        return program
    algorithm = resolve(program) if isinstance(program, str) else program
    if not isinstance(algorithm, Algorithm | WrittenSchedule):
        found = f"{type(program).__name__} {getattr(program, '__name__', program)!s:.60}"
        raise UsageError(messages.NOT_AN_ALGORITHM(function=function, found=found))
    if size is None:
        if isinstance(algorithm, WrittenSchedule):
            return algorithm.schedule(algorithm.written.size, root, **options)
        raise UsageError(messages.SIZE_NEEDED(function=function, algorithm=algorithm))
    return algorithm.schedule(size, root, **options)
