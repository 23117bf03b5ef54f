"""Finds the algorithm that a name stands for: a built-in one, or one in a user's file.

A name is that of a built-in (``ring``, ``all_gather/ring``), a function in a Python file (``my_algo.py:zigzag``; the
function may be left out where the file declares only one), or a file that holds a schedule in text form.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from unisono import collectives
from unisono.algorithms import user_file_messages as messages
from unisono.algorithms.catalogue import find
from unisono.algorithms.declaration import Algorithm
from unisono.collectives import Collective
from unisono.errors import UnisonoError, UsageError
from unisono.message import listed
from unisono.schedule import Schedule
from unisono.schedule.checking import describe_exception
from unisono.schedule.text import parse_schedule

# Watches code of a user while a block runs; the argument says what is wrong if the code does not return in time. The
# object that it gives has an attribute ``inside``: whether the user's code is running. The command line passes one
# (cli/watchdog.py); it needs a signal handler, which a library must not install.
Watch = Callable[[str], AbstractContextManager[Any]]
MOST_FILES = 64  # that are kept loaded


class WrittenSchedule:
    """A schedule in text form, in the file ``path``, where an algorithm is expected: it serves one size only."""

    def __init__(self, path: Path) -> None:
        self.written = parse_schedule(_text(path), path.name)
        self.collective = collectives.find(self.written.collective)
        self.collective.check_layout(self.written)
        self.name = self.written.algorithm

    def __str__(self) -> str:
        return f"{self.collective}/{self.name}"

    def __repr__(self) -> str:
        return f"<WrittenSchedule {self} on {self.written.size} ranks>"

    def can_serve(self, size: int) -> bool:
        """Return whether the schedule is for ``size`` ranks."""
        return size == self.written.size

    def idea_in(self, language: str) -> str:
        """Return nothing, whatever the ``language``: a text does not state its idea."""
        return ""

    def schedule(self, size: int, root: int | None = None, **options: Any) -> Schedule:
        """Return the schedule; raise UsageError if it is for another ``size`` or ``root``, or for any ``options``."""
        if size != self.written.size:
            raise UsageError(messages.WRITTEN_FOR(name=self, size=self.written.size, found=size))
        if root not in (None, self.written.root):
            raise UsageError(messages.WRITTEN_WITH_ROOT(name=self, root=self.written.root, found=root))
        if options:
            raise UsageError(messages.WRITTEN_NO_OPTIONS(name=self, options=listed(options)))
        return self.written


def resolve(
    name: str, collective: Collective | None = None, *, watch: Watch | None = None
) -> Algorithm | WrittenSchedule:
    """Return the algorithm that ``name`` stands for: "ring", "all_gather/ring", "my_file.py:zigzag", "schedule.txt".

    ``collective`` is the one that the algorithm must implement (default: any); a bare name then means that of this
    collective. A file is loaded again when it has changed. ``watch`` makes a context in which code of a file runs, to
    stop code that does not return (default: none). UsageError is raised if there is no such algorithm, or if the file
    cannot be loaded. For example::

        ring = unisono.find("ring")
        print(ring.schedule(4).label)
    """
    path, function = _split(name)
    if path is None:
        return find(name, collective)
    if path.suffix == ".py":
        found: Algorithm | WrittenSchedule = _from_file(path, function, collective, watch)
    else:
        found = WrittenSchedule(path)
    if collective is not None and found.collective is not collective:
        raise UsageError(messages.OTHER_COLLECTIVE(name=name, found=found, collective=collective))
    return found


def names_a_file(name: str) -> bool:
    """Return whether a name stands for a file and not for a built-in algorithm."""
    return _split(name)[0] is not None


def algorithms_in(file: str | Path, *, watch: Watch | None = None) -> list[Algorithm | WrittenSchedule]:
    """Return the algorithms that a file declares, in the order of the file."""
    path = Path(file)
    if path.suffix != ".py":
        return [WrittenSchedule(path)]
    declared = _declared(_loaded(path, watch))
    if not declared:
        raise UsageError(messages.NONE_IN_FILE(file=path.name))
    return [_guarded(algorithm, watch) for algorithm in declared.values()]


def absolute(name: str) -> str:
    """Return the name with the absolute path of its file, for a process with another working directory."""
    path, function = _split(name)
    if path is None:
        return name
    return f"{path.resolve()}:{function}" if function else str(path.resolve())


def _split(name: str) -> tuple[Path | None, str]:
    """Return the file that a name means, if it means one, and the function in it."""
    before, _, function = name.rpartition(":") if ".py:" in name else (name, "", "")
    if before.endswith(".py"):
        return Path(before), function
    if "." in name:  # no built-in algorithm has a dot in its name
        return Path(name), ""
    first, slash, _ = name.partition("/")
    if slash and (not first or "/" in name[len(first) + 1 :] or _is_file(Path(name))):
        return Path(name), ""  # a built-in has at most one slash, after the name of its collective
    return None, ""


def _from_file(path: Path, function: str, collective: Collective | None, watch: Watch | None) -> Algorithm:
    module = _loaded(path, watch)
    own = _declared(module)
    if not function:
        return _guarded(_only(path, own, collective), watch)
    found = getattr(module, function, None)
    if isinstance(found, Algorithm):
        return _guarded(found, watch)
    if hasattr(module, function):
        raise UsageError(messages.NOT_DECLARED(file=path.name, name=function))
    near = get_close_matches(function, list(own), n=1)
    if near:
        raise UsageError(messages.MEANT_IN_FILE(file=path.name, name=function, near=near[0]))
    names = listed(own) or messages.NO_ALGORITHM()
    raise UsageError(messages.NOT_IN_FILE(file=path.name, name=function, names=names))


def _only(path: Path, own: dict[str, Algorithm], collective: Collective | None) -> Algorithm:
    """Return the only algorithm of a file, or the only one of a collective."""
    if not own:
        raise UsageError(messages.NONE_IN_FILE(file=path.name))
    if len(own) == 1:
        return next(iter(own.values()))
    if collective is None:
        raise UsageError(messages.SEVERAL_IN_FILE(file=path.name, count=len(own), names=listed(own)))
    of_it = {name: algorithm for name, algorithm in own.items() if algorithm.collective is collective}
    if not of_it:
        raise UsageError(
            messages.NONE_OF_COLLECTIVE(file=path.name, collective=collective, names=listed(map(str, own.values())))
        )
    if len(of_it) > 1:
        raise UsageError(
            messages.SEVERAL_OF_COLLECTIVE(
                file=path.name, count=len(of_it), collective=collective, names=listed(of_it)
            )
        )
    return next(iter(of_it.values()))


def _declared(module: Any) -> dict[str, Algorithm]:
    """Return the algorithms that a module declares itself; those that it imports are not its own."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, Algorithm) and value.function.__module__ == module.__name__
    }


def _loaded(path: Path, watch: Watch | None) -> Any:
    if not _is_file(path):
        raise UsageError(messages.NO_FILE(path=str(path)))
    state = path.stat()
    return _load(path.resolve(), path.name, (state.st_mtime_ns, state.st_size), watch)


@functools.lru_cache(MOST_FILES)
def _load(path: Path, shown: str, version: tuple[int, int], watch: Watch | None) -> Any:
    """Run a file as a module. ``version`` is part of the key of the cache: a changed file is loaded again."""
    name = f"unisono_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # a .py file always has a spec, and the spec a loader
    loader = spec.loader
    assert loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))  # so that the file can import its neighbours
    try:
        if watch is None:
            loader.exec_module(module)
        else:
            with watch(messages.STILL_LOADING(file=shown)):
                loader.exec_module(module)
    except (UnisonoError, KeyboardInterrupt):
        raise
    except BaseException as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line, text = frames[-1].lineno if frames else "?", describe_exception(error)
        if isinstance(error, SyntaxError) and error.filename == str(path):  # its text repeats the file and the line
            line, text = error.lineno or "?", f"{type(error).__name__}: {error.msg}"
        raise UsageError(messages.FILE_FAILED(file=shown, line=line, error=text)) from error
    finally:
        sys.path.pop(0)
    return module


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # such as a name that is too long
        return False


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(messages.NO_FILE(path=str(path))) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(messages.NOT_TEXT(file=path.name, error=error)) from error


def _guarded(algorithm: Algorithm, watch: Watch | None) -> Algorithm:
    """Return the algorithm with all functions of its author watched, so that none can run forever."""
    if watch is None:
        return algorithm
    function = algorithm.function
    too_long = messages.NO_STEP_YET()

    @functools.wraps(function)
    def program(*args: Any, **options: Any) -> Iterator[Any]:
        with watch(too_long):
            steps = function(*args, **options)
        # An object that is not iterable is rejected by the checks of the schedule, with a better message.
        return _watched_steps(steps, watch, too_long) if isinstance(steps, Iterable) else steps

    def guarded(amount: Any, name: str) -> Any:
        if not callable(amount):
            return amount

        @functools.wraps(amount)
        def watched_amount(*args: Any, **options: Any) -> Any:
            with watch(messages.NOT_RETURNED_YET(name=name)):
                return amount(*args, **options)

        return watched_amount

    return dataclasses.replace(
        algorithm,
        function=program,
        chunks=guarded(algorithm.chunks, "chunks"),
        scratch=guarded(algorithm.scratch, "scratch"),
        serves=guarded(algorithm.serves, "serves"),
    )


def _watched_steps(steps: Iterable[Any], watch: Watch, too_long: str) -> Iterator[Any]:
    with watch(too_long) as watching:
        for step in steps:
            watching.inside = False
            yield step
            watching.inside = True
