"""Find what a name on the command line stands for.

A name is that of a built-in (``ring``, ``all_gather/ring``), a function in a user's file (``my_algo.py:zigzag``; the
function may be left out where there is only one), or a file with a schedule in text form.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from unisono import collectives
from unisono.algorithms import Algorithm, find
from unisono.cli.watchdog import watched
from unisono.errors import UnisonoError, UsageError
from unisono.schedule import Schedule
from unisono.schedule.checking import said
from unisono.schedule.text import parse_schedule


class WrittenSchedule:
    """A schedule in text form, where an algorithm is expected: it serves one size only."""

    def __init__(self, path: Path) -> None:
        self.written = parse_schedule(_text(path), path.name)
        self.collective = collectives.find(self.written.collective)
        self.collective.check_layout(self.written)
        self.name = self.written.algorithm

    def __str__(self) -> str:
        return f"{self.collective}/{self.name}"

    def idea_in(self, language: str) -> str:
        """Nothing is known of the idea behind a text."""
        return ""

    def schedule(self, size: int, root: int | None = None, **options: Any) -> Schedule:
        """Return the schedule, if it is for this size."""
        if size != self.written.size or options or root not in (None, self.written.root):
            where = "" if self.written.root is None else f" with root {self.written.root}"
            raise UsageError(f"{self}: this file is for {self.written.size} ranks{where} only; expected -n to say so")
        return self.written


def resolve(name: str) -> Algorithm | WrittenSchedule:
    """Return what a name on the command line stands for."""
    path, _, function = name.rpartition(":") if ".py:" in name else (name, "", "")
    if path.endswith(".py"):
        return _from_file(Path(path), function)
    if "." in name:  # no algorithm has a dot in its name
        return WrittenSchedule(Path(name))
    return find(name)


def _from_file(path: Path, function: str) -> Algorithm:
    module = _load(path)
    found = {name: value for name, value in vars(module).items() if isinstance(value, Algorithm)}
    # what the file imports from us is not what it is about
    own = {name: value for name, value in found.items() if value.function.__module__ == module.__name__}
    if not function:
        if len(own) == 1:
            return _guarded(next(iter(own.values())))
        raise UsageError(
            f"{path.name}: has {len(own)} algorithms; expected "
            + (f"one of them after a colon: {', '.join(own)}" if own else "a generator with @algorithm(...) above it")
        )
    if function in found:
        return _guarded(found[function])
    if hasattr(module, function):
        raise UsageError(f"{path.name}: {function} is not declared; write @algorithm(all_reduce, ...) above it")
    near = get_close_matches(function, list(own), n=1)
    raise UsageError(
        f"{path.name}: there is no {function!r}"
        + (f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(own) or 'no algorithm'}")
    )


@functools.cache
def _load(path: Path) -> Any:
    try:
        is_file = path.is_file()
    except OSError:  # such as a name that is too long
        is_file = False
    if not is_file:
        raise UsageError(f"there is no file {str(path)!r}")
    name = f"unisono_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # a .py file always has a spec, and that a loader
    loader = spec.loader
    assert loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent.resolve()))  # so that the file can import its neighbours
    try:
        with watched(f"{path.name} is still loading"):
            loader.exec_module(module)
    except (UnisonoError, KeyboardInterrupt):
        raise
    except BaseException as error:
        where = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else where[-1].lineno if where else "?"
        raise UsageError(f"{path.name}, line {line}: {said(error)}") from error
    finally:
        sys.path.pop(0)
    return module


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"there is no file {str(path)!r}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path.name}: cannot be read as text: {error}") from error


def _guarded(algorithm: Algorithm) -> Algorithm:
    """Return the algorithm with functions of its author's that cannot go on for ever."""
    written = algorithm.function

    @functools.wraps(written)
    def program(*args: Any, **options: Any) -> Iterator[Any]:
        with watched("the program runs on without yielding a step"):
            steps = written(*args, **options)
        return _watched_steps(steps) if isinstance(steps, Iterable) else steps  # refused further on, in better words

    def guarded(amount: Any, name: str) -> Any:
        if not callable(amount):
            return amount

        @functools.wraps(amount)
        def function(*args: Any, **options: Any) -> Any:
            with watched(f"{name}= runs on without an answer"):
                return amount(*args, **options)

        return function

    return dataclasses.replace(
        algorithm,
        function=program,
        chunks=guarded(algorithm.chunks, "chunks"),
        scratch=guarded(algorithm.scratch, "scratch"),
        serves=guarded(algorithm.serves, "serves"),
    )


def _watched_steps(steps: Iterable[Any]) -> Iterator[Any]:
    with watched("the program runs on without yielding a step") as watch:
        for step in steps:
            watch.inside = False
            yield step
            watch.inside = True
