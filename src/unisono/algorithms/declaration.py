"""``@algorithm`` declares that a generator implements a collective.

::

    @algorithm(all_reduce, chunks=one_per_rank)
    def ring(rank, size): ...

The generator takes ``rank`` and ``size``, and ``root`` if the collective has one; further parameters are options of
the algorithm and need defaults. The declaration does not change the program: calling ``ring(2, 5)`` still runs it,
so that algorithms can be composed of others (``yield from``).
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, cast

from unisono.algorithms import messages
from unisono.collectives import COLLECTIVES, Collective
from unisono.errors import UnisonoError, UsageError
from unisono.message import listed
from unisono.schedule import Op, Schedule
from unisono.schedule.checking import describe_exception
from unisono.schedule.schedule import DEEPEST
from unisono.schedule.varying import Varying

# A number of chunks or scratch slots: an integer, or a function of the size and the options.
Amount = int | Callable[..., int]
Steps = Iterator[Op | tuple[Op, ...]]


def one(size: int) -> int:
    """Return 1, whatever ``size`` is: ``chunks=one`` does not cut the vector."""
    return 1


def one_per_rank(size: int) -> int:
    """Return ``size``: ``chunks=one_per_rank`` cuts the vector into as many chunks as there are ranks."""
    return size


@dataclass(frozen=True, eq=False)
class Algorithm:
    """An implementation of a collective: a program, and its declaration.

    ``@algorithm`` makes it from a generator ``function`` for ``collective``. ``options`` are the further parameters
    of the generator, with their defaults. ``chunks``, ``scratch``, ``serves``, ``step_limit`` and ``depth`` are those
    of ``@algorithm``.
    """

    collective: Collective
    function: Callable[..., Steps]
    chunks: Amount
    scratch: Amount = 0
    serves: Callable[[int], bool] | None = None
    step_limit: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    depth: int = 1

    def __call__(self, rank: int, size: int, *args: Any, **options: Any) -> Steps:
        """Run the program for one rank."""
        function = rank.adapt(self.function) if isinstance(rank, Varying) else self.function
        return cast("Steps", function(rank, size, *args, **options))

    def __str__(self) -> str:
        return f"{self.collective}/{self.name}"

    def __repr__(self) -> str:
        return f"<Algorithm {self}>"

    @cached_property
    def name(self) -> str:
        """The name of the function without the collective at its end: ``ring_all_gather`` is ``ring``."""
        return self.function.__name__.removesuffix(f"_{self.collective.name}")

    @property
    def idea(self) -> str:
        """The docstring, on one line."""
        return " ".join((inspect.getdoc(self.function) or "").split())

    def idea_in(self, language: str) -> str:
        """Return the idea in ``language``: Chinese ("zh") if there is a Chinese text, otherwise English."""
        from unisono.algorithms.chinese import IDEAS  # only needed for Chinese

        return IDEAS.get(str(self), self.idea) if language == "zh" else self.idea

    @property
    def source(self) -> str:
        """The program as its author wrote it."""
        return inspect.getsource(self.function)

    def chunk_count(self, size: int, **options: Any) -> int:
        """Return the number of chunks of the vector on ``size`` ranks with these ``options``."""
        return self._amount("chunks", self.chunks, size, {**self.options, **options})

    def scratch_count(self, size: int, **options: Any) -> int:
        """Return the number of slots beside those of the collective, on ``size`` ranks with these ``options``."""
        return self._amount("scratch", self.scratch, size, {**self.options, **options})

    def schedule(self, size: int, root: int | None = None, **options: Any) -> Schedule:
        """Return the schedule for ``size`` ranks.

        ``root`` is the root of the collective (default 0), if it has one. ``options`` are those of the algorithm.
        UsageError is raised if the algorithm does not serve these arguments.
        """
        self._check_call(size, root, options)
        chunks = self.chunk_count(size, **options)
        settings = {**self.options, **options}
        if self.collective.rooted:
            root = settings["root"] = root or 0
        made = Schedule(
            collective=self.collective.name, algorithm=self.name, size=size, chunks=chunks,
            slots=self.collective.slots(chunks)[-1].stop + self.scratch_count(size, **options),
            make=partial(_program, self, size, settings), root=root, options=options, own_step_limit=self.step_limit,
            depth=self.depth,
        )  # fmt: skip
        self.collective.check_layout(made)
        return made

    def can_serve(self, size: int) -> bool:
        """Return whether the algorithm is declared for ``size`` ranks; raise UsageError if ``serves`` fails."""
        if self.serves is None:
            return True
        try:
            return bool(self.serves(size))
        except Exception as error:
            raise UsageError(
                messages.SERVES_RAISED(algorithm=self, error=describe_exception(error), size=size)
            ) from error

    def __reduce__(self) -> str | tuple[Any, ...]:
        # A declared algorithm replaces its function in the module, so it is found by the name of the function.
        return (_find_again, (self.function.__module__, self.function.__qualname__))

    def _check_call(self, size: int, root: int | None, options: Mapping[str, Any]) -> None:
        if type(size) is not int or size < 1:
            raise UsageError(messages.BAD_SIZE(algorithm=self, size=repr(size)))
        for name in options:
            if name not in self.options:
                known = listed(self.options) or messages.NONE()
                raise UsageError(messages.NO_OPTION(algorithm=self, name=repr(name), options=known))
        if root is not None and type(root) is not int:
            raise UsageError(messages.BAD_ROOT(algorithm=self, root=repr(root)))
        if root is not None and not self.collective.rooted:
            raise UsageError(messages.ROOT_WITHOUT_NEED(algorithm=self, root=root, collective=self.collective))
        if not self.can_serve(size):
            from unisono.algorithms.catalogue import algorithms_serving  # which imports this module

            others = listed(other.name for other in algorithms_serving(self.collective, size))
            served = listed(str(few) for few in range(1, 17) if self.can_serve(few)) or messages.NONE()
            raise UsageError(messages.CANNOT_SERVE(algorithm=self, size=size, served=served, others=others))

    def _amount(self, what: str, amount: Amount, size: int, options: Mapping[str, Any]) -> int:
        count: Any = amount
        if callable(amount):
            try:
                wanted = inspect.signature(amount).parameters
                count = amount(size, **{name: value for name, value in options.items() if name in wanted})
            except UnisonoError:
                raise
            except Exception as error:
                raise UsageError(
                    messages.AMOUNT_RAISED(algorithm=self, name=what, error=describe_exception(error), size=size)
                ) from error
        if type(count) is not int or count < 0:
            raise UsageError(messages.BAD_AMOUNT(algorithm=self, name=what, amount=repr(count), size=size))
        return count


def _program(algorithm: Algorithm, size: int, settings: Mapping[str, Any], rank: int) -> Steps:
    return algorithm(rank, size, **settings)


def _find_again(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def algorithm(
    collective: Collective,
    *,
    chunks: Amount = one,
    scratch: Amount = 0,
    serves: Callable[[int], bool] | None = None,
    step_limit: int | None = None,
    depth: int = 1,
) -> Callable[[Callable[..., Any]], Algorithm]:
    """Declare that a generator ``(rank, size, ...)`` implements ``collective``.

    ``chunks`` (default: ``one``) and ``scratch`` (default 0) are numbers, or functions of the size (and of options,
    by name). ``serves`` returns whether the algorithm works for a size; leave it out if it works for all of them.
    ``step_limit`` raises the number of steps after which a program is considered endless. ``depth`` (default 1) is
    the number of messages that a channel must hold for the program to complete; the program is proved at that depth,
    and the engine's channels hold at least as many. UsageError is raised if the declaration is invalid. For example::

        @algorithm(all_gather, chunks=one_per_rank)
        def ring(rank, size):
            for step in range(size - 1):
                yield (
                    send((rank - step) % size, dst=(rank + 1) % size),
                    recv((rank - step - 1) % size, src=(rank - 1) % size),
                )
    """
    if collective not in COLLECTIVES:
        raise UsageError(messages.NO_COLLECTIVE(found=repr(collective)))
    if type(depth) is not int or not 1 <= depth <= DEEPEST:
        raise UsageError(messages.BAD_DEPTH(depth=repr(depth), deepest=DEEPEST))

    def declare(function: Callable[..., Any]) -> Algorithm:
        return Algorithm(
            collective, function, chunks, scratch, serves, step_limit, _declared_options(collective, function), depth
        )

    return declare


def _declared_options(collective: Collective, function: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters after rank, size (and root), with their defaults."""
    parameters = list(inspect.signature(function).parameters.values())
    leading = ["rank", "size"] + ["root"] * collective.rooted
    code = function.__code__
    file, line = code.co_filename.rpartition("/")[2], code.co_firstlineno
    where = messages.DECLARED_IN(file=file, line=line, collective=collective)
    if [parameter.name for parameter in parameters[: len(leading)]] != leading:
        raise UsageError(
            messages.BAD_PARAMETERS(
                where=where, function=function.__name__, parameters=", ".join(p.name for p in parameters),
                expected=", ".join(leading).replace("root", "root=0"),
            )
        )  # fmt: skip
    for parameter in parameters[2:]:
        if parameter.default is parameter.empty:
            raise UsageError(messages.NO_DEFAULT(where=where, parameter=parameter.name, function=function.__name__))
    return {parameter.name: parameter.default for parameter in parameters[len(leading) :]}
