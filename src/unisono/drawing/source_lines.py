"""Finds the source line that yields each step, without changing any program.

*Stack*: the positions of all running programs when a step is yielded: the outermost program first, then the one that
it runs with ``yield from``, and so on; for each one its code, a line number, and whether it runs backwards.

Python's profiler reports every yield of every generator, while the frames on the way to it still exist. Two
generators of the schedule package yield other steps than they receive, and are handled separately: ``mapped``
converts each step, and ``backwards`` first collects all steps and then yields them from the last to the first.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

from unisono.algorithms import user_files
from unisono.schedule import backwards, composition, mapped

Stack = tuple[tuple[CodeType, int, bool], ...]

# Files whose generators stand between programs: composition, the guard around code of a user, and this file.
_NOT_A_PROGRAM = {composition.__file__, user_files.__file__, __file__}


class LineFinder:
    """Runs programs and keeps the stack of each step that has ops."""

    def __init__(self) -> None:
        self.stacks: dict[int, list[Stack]] = {}

    def run(self, rank: int, steps: Iterable[object]) -> Iterator[object]:
        """Yield the steps of the program of one rank."""
        stacks = self.stacks[rank] = []
        iterator = iter(steps)
        watch = _Watch()
        while True:
            try:
                step = watch.next_of(iterator)
            except StopIteration:
                return
            if step != () and step != []:  # schedules leave out empty steps, too
                stacks.append(watch.stack_of(step))
            yield step


class _Watch:
    """The profiler function, and what it has seen since the last step."""

    def __init__(self) -> None:
        self.seen: dict[int, tuple[object, Stack]] = {}  # by identity of the yielded object, which is kept alive here
        self.latest: dict[int, Stack] = {}  # by identity of a frame: the last stack of the generator that it runs
        self.films: dict[int, list[Stack]] = {}  # by identity of a frame of `backwards`

    def next_of(self, iterator: Iterator[object]) -> object:
        """Return the next step, with the profiler on."""
        self.seen.clear()
        before = sys.getprofile()
        sys.setprofile(self._notice)
        try:
            return next(iterator)
        finally:
            sys.setprofile(before)

    def stack_of(self, step: object) -> Stack:
        """Return the stack of a step; empty if no generator yielded it."""
        return self.seen.get(id(step), (None, ()))[1]

    def _notice(self, frame: FrameType, event: str, value: Any) -> None:
        if event != "return" or value is None or not frame.f_code.co_flags & inspect.CO_GENERATOR:
            return
        known = self.seen.get(id(value))
        if known is not None:  # already yielded by the generator to which this one delegates
            stack = known[1]
        elif frame.f_code is mapped.__code__:
            stack = self.latest.get(id(frame), ())
        elif frame.f_code is backwards.__code__:
            stack = self.films[id(frame)].pop() if self.films.get(id(frame)) else ()
        else:
            stack = self._stack(frame)
        self.seen[id(value)] = value, stack
        caller = frame.f_back
        while caller is not None and caller.f_code.co_name.startswith("<"):  # a comprehension
            caller = caller.f_back
        if caller is not None:
            self.latest[id(caller)] = stack
            if caller.f_code is backwards.__code__:
                self.films.setdefault(id(caller), []).append(stack)

    def _stack(self, frame: FrameType | None) -> Stack:
        found: list[tuple[CodeType, int, bool]] = []
        while frame is not None and frame.f_code is not _Watch.next_of.__code__:
            code = frame.f_code
            if code is backwards.__code__:
                found = [(code, line, not reverse) for code, line, reverse in found]
            elif code.co_filename not in _NOT_A_PROGRAM and not code.co_name.startswith("<"):
                found.append((code, frame.f_lineno, False))
            frame = frame.f_back
        return tuple(reversed(found))
