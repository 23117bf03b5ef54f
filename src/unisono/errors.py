"""Every exception that Unisono raises.

::

    UnisonoError
    ├── ScheduleError(ValueError)     an algorithm is wrong            .algorithm .size .rank .step .op
    │   ├── UnmatchedError            a send without its receive, or the two disagree on the chunk
    │   ├── DeadlockError             ranks wait for each other in a circle
    │   ├── HazardError               a step reads or writes a chunk in a way that has no one meaning
    │   └── GoalError                 the collective's result is missing, wrong, or differs between ranks
    ├── UsageError(ValueError)        this call cannot work; found before any byte moved
    ├── CommError(RuntimeError)       communication failed
    │   ├── CollectiveTimeout(TimeoutError)
    │   ├── PeerLost(ConnectionError)
    │   ├── MismatchError
    │   └── Aborted
    ├── GradientError(ArithmeticError)   a gradient is not a number    .rank .parameter
    └── InternalError                 a bug of ours

Every message says who, where, what was expected, what was found, and what to do next.
"""

from __future__ import annotations

from typing import Any

# What a ScheduleError can know beside its complaint.
PARTS = ("algorithm", "size", "rank", "step", "op", "chunk", "expected", "found", "hint")


class UnisonoError(Exception):
    """The root of the tree: ``except UnisonoError`` catches everything of ours."""


class ScheduleError(UnisonoError, ValueError):
    """An algorithm is wrong; the attributes say exactly where.

    ``what`` is the complaint in one sentence. The rest is context: each part that is given becomes an
    attribute and a piece of the message.
    """

    def __init__(
        self,
        what: str,
        *,
        algorithm: str | None = None,
        size: int | None = None,
        rank: int | None = None,
        step: int | None = None,
        op: object | None = None,
        chunk: int | None = None,
        expected: str | None = None,
        found: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.what = what
        self.algorithm = algorithm
        self.size = size
        self.rank = rank
        self.step = step
        self.op = op
        self.chunk = chunk
        self.expected = expected
        self.found = found
        self.hint = hint
        super().__init__(self._message())

    def _message(self) -> str:
        where = []
        if self.algorithm is not None:
            ranks = "" if self.size is None else f" on {self.size} rank{'' if self.size == 1 else 's'}"
            where.append(f"{self.algorithm}{ranks}")
        if self.rank is not None:
            where.append(f"rank {self.rank}")
        if self.step is not None:
            where.append(f"step {self.step}")
        if self.op is not None:
            where.append(f"`{self.op}`")
        if self.chunk is not None and self.chunk != getattr(self.op, "chunks", None):
            where.append(f"chunk {self.chunk}")
        lines = [": ".join(part for part in (", ".join(where), self.what) if part)]
        if self.expected is not None:
            lines.append(f"  expected: {self.expected}")
        if self.found is not None:
            lines.append(f"  found:    {self.found}")
        if self.hint is not None:
            lines.append(f"  to do:    {self.hint}")
        return "\n".join(lines)

    def parts(self) -> dict[str, Any]:
        """Return what is known beside the complaint."""
        return {name: getattr(self, name) for name in PARTS if getattr(self, name) is not None}

    def at(self, **parts: Any) -> ScheduleError:
        """Return the same error with what was not yet known of the place where it happened."""
        return type(self)(self.what, **{**parts, **self.parts()})

    def context(self) -> dict[str, Any]:
        """Return everything as plain data, for ``--json``."""
        plain = {name: str(part) if name == "op" else part for name, part in self.parts().items()}
        return {"error": type(self).__name__, "what": self.what, **plain}

    def __reduce__(self) -> tuple[Any, ...]:
        # Proofs run in worker processes, and keyword-only arguments do not survive the default pickling.
        # The op may hold anything that a program yields: its text is enough.
        parts = {name: str(part) if name == "op" else part for name, part in self.parts().items()}
        return (_rebuild, (type(self), self.what, parts))


def _rebuild(kind: type[ScheduleError], what: str, parts: dict[str, Any]) -> ScheduleError:
    return kind(what, **parts)


class UnmatchedError(ScheduleError):
    """A send without its receive, a receive without its send, or two ends that disagree on the chunk."""


class DeadlockError(ScheduleError):
    """Ranks wait for each other in a circle, with unbounded channels or at the given depth."""


class HazardError(ScheduleError):
    """A step reads or writes a chunk in a way that has no single meaning."""


class GoalError(ScheduleError):
    """The result is missing, counted twice, wrong, or not the same on every rank."""


class UsageError(UnisonoError, ValueError):
    """This call cannot work; found before any byte moved."""


class CommError(UnisonoError, RuntimeError):
    """Communication failed; ``rank`` is the one that it is about, if there is one.

    It is the rank in the job, also where the communicator is a part of it (``split``, torch's ``new_group``).
    """

    def __init__(self, message: str, *, rank: int | None = None) -> None:
        self.rank = rank
        super().__init__(message)


class CollectiveTimeout(CommError, TimeoutError):
    """A collective did not finish in time."""


class PeerLost(CommError, ConnectionError):
    """A peer died or closed its connection."""


class MismatchError(CommError):
    """Two ranks called different things."""


class Aborted(CommError):
    """The communicator was aborted."""


class GradientError(UnisonoError, ArithmeticError):
    """A gradient is not a number: on which rank, and of which parameter."""

    def __init__(self, message: str, *, rank: int | None = None, parameter: str = "") -> None:
        self.rank, self.parameter = rank, parameter
        super().__init__(message)


class InternalError(UnisonoError):
    """A bug of ours: please report it."""
