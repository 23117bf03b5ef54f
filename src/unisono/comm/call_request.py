"""The request of a call: everything that its plan depends on, and the key of the plan cache."""

from __future__ import annotations

from typing import Any, NamedTuple

from unisono.algorithms.declaration import Algorithm
from unisono.collectives import Collective
from unisono.comm import messages
from unisono.compiler import Lengths
from unisono.errors import UsageError
from unisono.schedule import Schedule

NO_ELEMENTS = Lengths((0,), (0,))


class GivenSchedule:
    """A schedule that a call names as its algorithm; compared by identity, and kept alive by the request."""

    __slots__ = ("schedule",)

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GivenSchedule) and self.schedule is other.schedule

    def __hash__(self) -> int:
        return id(self.schedule)


class CallRequest(NamedTuple):
    """A call of a collective, without its arrays. Two calls with equal requests share one plan.

    A method of a communicator states what the caller wrote, and ``Dispatcher.call`` adds ``dtype`` and ``lengths``
    from the arrays. Code that builds on a communicator states all of it and passes the request to
    ``Communicator.plan``.
    """

    collective: Collective
    op: str | None = None  # the name of a reduction; None where the collective does not reduce
    root: int | None = None
    algorithm: Any = None  # a name, an Algorithm or a Schedule; None: the best one known
    codec: Any = None  # a codec or its name
    dtype: str = "uint8"
    lengths: Lengths = NO_ELEMENTS  # of the blocks, in elements
    label: str | None = None  # the text of the call in errors and traces, where it performs another call

    def as_key(self) -> CallRequest:
        """Return the request in a form that can be hashed; raise UsageError if its algorithm is none."""
        algorithm = self.algorithm
        if algorithm is None or isinstance(algorithm, str | Algorithm | GivenSchedule):
            return self
        if isinstance(algorithm, Schedule):
            return self._replace(algorithm=GivenSchedule(algorithm))
        raise UsageError(messages.NOT_AN_ALGORITHM(call=self.collective, algorithm=repr(algorithm)))
