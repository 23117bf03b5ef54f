"""Every exception that Unisono raises.

::

    UnisonoError
    ├── ScheduleError(ValueError)     an algorithm is wrong            .algorithm .size .rank .step .op
    │   ├── UnmatchedError            a send without its receive, or the two disagree on the chunk
    │   ├── DeadlockError             ranks wait for each other in a cycle
    │   ├── HazardError               the reads and writes of a step conflict
    │   └── GoalError                 the collective's result is missing, wrong, or differs between ranks
    ├── UsageError(ValueError)        this call cannot work; found before any byte moved
    ├── CommError(RuntimeError)       communication failed
    │   ├── CollectiveTimeout(TimeoutError)
    │   ├── PeerLost(ConnectionError)
    │   ├── MismatchError
    │   └── Aborted
    ├── GradientError(ArithmeticError)   a gradient is not a number    .rank .parameter
    ├── EngineMissing(ImportError)       this installation has no native engine
    └── InternalError                 a bug in Unisono

Every message states the rank, the location, what was expected, what was found, and a hint. All of them are data: see
``message.py``. In a text, steps are counted from 1; the attribute ``step`` is an index, which counts from 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unisono.message import ENGLISH, Message, Template, join, translated

# The attributes of a ScheduleError beside its complaint.
PARTS = ("algorithm", "size", "rank", "step", "op", "chunk", "expected", "found", "hint")


WITH_LABEL = Template("errors.with_label", "{location}: {what}", "{location}：{what}")
ON_RANKS = Template("errors.on_ranks", "{algorithm} on {size} ranks", "{algorithm}（{size} 个 rank）")
ON_ONE_RANK = Template("errors.on_one_rank", "{algorithm} on {size} rank", "{algorithm}（{size} 个 rank）")
RANK = Template("errors.rank", "rank {rank}", "rank {rank}")
STEP = Template("errors.step", "step {step}", "第 {step} 步")
CHUNK = Template("errors.chunk", "chunk {chunk}", "第 {chunk} 块")
EXPECTED = Template("errors.expected", "  expected: {what}", "  应为：{what}")
FOUND = Template("errors.found", "  found:    {what}", "  实际：{what}")
HINT = Template("errors.hint", "  hint:     {what}", "  建议：{what}")


class UnisonoError(Exception):
    """The root of the tree: ``except UnisonoError`` catches every error of Unisono.

    The text is a message (``message.py``): ``id`` names its template, ``parameters`` holds what was filled in, and
    ``text("zh")`` is the Chinese.
    """

    message: str

    def __init__(self, message: str = "") -> None:
        """Make an error from ``message``, a Message or plain text (default: empty)."""
        self.message = message
        super().__init__(message)

    @property
    def id(self) -> str:
        """The id of the message, which never changes; empty where the error was raised with plain text."""
        return self.message.id if isinstance(self.message, Message) else ""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters of the message."""
        return self.message.parameters if isinstance(self.message, Message) else {}

    def text(self, language: str = ENGLISH) -> str:
        """Return the whole text in ``language``: "en" (default) or "zh"."""
        return translated(self.message, language)

    def context(self) -> dict[str, Any]:
        """Return the error as plain data, for ``--json``."""
        return {"error": type(self).__name__, "id": self.id, "parameters": dict(self.parameters), "text": str(self)}


class ScheduleError(UnisonoError, ValueError):
    """An algorithm is wrong; the attributes say exactly where.

    Each part of the location that is known is an attribute and a piece of the message; the others are None.
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
        """Make an error from ``what``, the complaint in one sentence, and the parts that are known (default: none).

        ``algorithm`` is the name of the algorithm and ``size`` its number of ranks. ``rank``, ``step``, ``op`` and
        ``chunk`` are the location: ``step`` is the index of the step, which counts from 0 (the message counts steps
        from 1). ``expected`` and ``found`` say what should have been there and what was, and ``hint`` what to change.
        """
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
        super().__init__(what)
        self.args = (self.text(),)

    def text(self, language: str = ENGLISH) -> str:
        """Return the whole text in ``language``, "en" (default) or "zh".

        It consists of the location, the complaint, and the parts expected, found and hint.
        """
        location = self.location()
        first = WITH_LABEL(location=location, what=self.what) if location else self.what
        lines = [first]
        for template, part in ((EXPECTED, self.expected), (FOUND, self.found), (HINT, self.hint)):
            if part is not None:
                lines.append(template(what=part))
        return "\n".join(translated(line, language) for line in lines)

    def location(self) -> str:
        """Return the known parts of the location: algorithm, rank, step, op and chunk."""
        parts: list[str] = []
        if self.algorithm is not None and self.size is None:
            parts.append(self.algorithm)
        elif self.algorithm is not None:
            template = ON_ONE_RANK if self.size == 1 else ON_RANKS
            parts.append(template(algorithm=self.algorithm, size=self.size))
        if self.rank is not None:
            parts.append(RANK(rank=self.rank))
        if self.step is not None:
            parts.append(STEP(step=self.step + 1))
        if self.op is not None:
            parts.append(f"`{self.op}`")
        if self.chunk is not None and self.chunk != getattr(self.op, "chunks", None):
            parts.append(CHUNK(chunk=self.chunk))
        return join(parts, ", ", "，") if parts else ""

    def parts(self) -> dict[str, Any]:
        """Return the attributes that are known, beside the complaint."""
        return {name: getattr(self, name) for name in PARTS if getattr(self, name) is not None}

    def at(self, **parts: Any) -> ScheduleError:
        """Return the same error with those of ``parts``, keywords of the constructor, that were not yet known."""
        return type(self)(self.what, **{**parts, **self.parts()})

    def context(self) -> dict[str, Any]:
        """Return everything as plain data, for ``--json``; ``step`` is an index, which counts from 0."""
        plain = {name: str(part) if name == "op" else part for name, part in self.parts().items()}
        return {**super().context(), "what": self.what, **plain}

    def __reduce__(self) -> tuple[Any, ...]:
        # Proofs run in worker processes, and keyword-only arguments do not survive the default pickling.
        # The op may hold anything that a program yields: its text is enough, and whether it is about this chunk only.
        parts = self.parts()
        if self.op is not None:
            parts["op"] = _OpText(self.op)
            parts["op"].chunks = self.chunk if self.chunk == getattr(self.op, "chunks", None) else None
        return (_rebuild, (type(self), self.what, parts))


class _OpText(str):
    """The text of an op; ``chunks`` is the chunk of the error if the op is about that chunk alone."""

    chunks: int | None


def _rebuild(kind: type[ScheduleError], what: str, parts: dict[str, Any]) -> ScheduleError:
    return kind(what, **parts)


class UnmatchedError(ScheduleError):
    """A send without its receive, a receive without its send, or two ends that disagree on the chunk."""


class DeadlockError(ScheduleError):
    """Ranks wait for each other in a cycle, with unbounded channels or at the given depth."""


class HazardError(ScheduleError):
    """The reads and writes of a step conflict, or a slot is read before it is written."""


class GoalError(ScheduleError):
    """The result is missing, counted twice, wrong, or not the same on every rank."""


class UsageError(UnisonoError, ValueError):
    """This call cannot work; found before any byte moved."""


class CommError(UnisonoError, RuntimeError):
    """Communication failed; ``rank`` is the one that it is about, if there is one.

    It is the rank in the job, also where the communicator is a part of it (``split``, torch's ``new_group``).
    """

    def __init__(self, message: str, *, rank: int | None = None) -> None:
        """Make an error from ``message`` about ``rank``, a rank in the job (default: none)."""
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
    """A gradient is not a number; ``rank`` and ``parameter`` say where."""

    def __init__(self, message: str, *, rank: int | None = None, parameter: str = "") -> None:
        """Make an error from ``message`` about the gradient of ``parameter``, a name, on ``rank``.

        By default, both are unknown.
        """
        self.rank, self.parameter = rank, parameter
        super().__init__(message)


class EngineMissing(UnisonoError, ImportError):
    """This installation has no native engine, which executes collectives on real ranks (docs/installation.md)."""


class InternalError(UnisonoError):
    """A bug in Unisono: please report it."""
