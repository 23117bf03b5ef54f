"""What a trace says, as data. All times are nanoseconds since the same moment, the same for all ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

Reason = Literal["message", "room", "entry"]


@dataclass(frozen=True, slots=True, eq=False)
class Wait:
    """How long a rank waited for another one, and for what: a message, room for one, or that it begins the call."""

    rank: int
    peer: int
    reason: Reason
    begin_ns: int
    end_ns: int

    @property
    def ns(self) -> int:
        """How long it was."""
        return self.end_ns - self.begin_ns


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One instruction in one pass. Its waits come first; from ``begin_ns`` on it works."""

    rank: int
    kind: str  # send, receive, reduce, copy, combine; results: what is done to them in the end
    number_of_pass: int
    instruction: int
    step: int  # of the program as its author wrote it
    sources: tuple[int, ...]
    to: tuple[int, ...]
    chunks: str
    nbytes: int
    begin_ns: int
    end_ns: int
    waits: tuple[Wait, ...] = ()

    @property
    def entered_ns(self) -> int:
        """When the rank came to it."""
        return self.waits[0].begin_ns if self.waits else self.begin_ns

    @property
    def work_ns(self) -> int:
        """How long it worked."""
        return self.end_ns - self.begin_ns


@dataclass(slots=True, eq=False)
class RankCall:
    """One call as one rank made it."""

    rank: int
    begin_ns: int
    end_ns: int
    ops: list[Op] = field(default_factory=list)  # in order
    waits: list[Wait] = field(default_factory=list)  # all of them; some belong to no op
    background: bool = False
    failed: bool = False
    unfinished: bool = False  # it went on when the recording ended
    truncated: int = 0  # ops that were dropped

    @property
    def whole(self) -> bool:
        """Whether all of it is there."""
        return not (self.failed or self.unfinished or self.truncated)


@dataclass(frozen=True, eq=False)
class Call:
    """One collective, as all ranks made it."""

    number: int  # the same on every rank
    collective: str
    algorithm: str
    count: int
    dtype: str
    nbytes: int
    passes: int
    ops_in_pass: dict[int, int]  # of each rank
    schedule: str  # digest; Run.schedules has the text
    op: str | None
    root: int | None
    codec: str | None
    ranks: dict[int, RankCall]  # those that have recorded it

    @cached_property
    def begin_ns(self) -> int:
        """When the first rank began it."""
        return min(rank.begin_ns for rank in self.ranks.values())

    @cached_property
    def end_ns(self) -> int:
        """When the last rank was done."""
        return max(rank.end_ns for rank in self.ranks.values())

    @property
    def ns(self) -> int:
        """How long it took, from the first to come to the last to go."""
        return self.end_ns - self.begin_ns

    @property
    def label(self) -> str:
        """Such as all_reduce/ring."""
        return f"{self.collective}/{self.algorithm}"


@dataclass(frozen=True, slots=True, eq=False)
class Transfer:
    """A send or a recv, outside of collectives."""

    rank: int
    peer: int
    sending: bool
    tag: int
    nbytes: int
    number: int  # both ends of a message have the same
    begin_ns: int
    end_ns: int


@dataclass(frozen=True, eq=False)
class TracedCommunicator:
    """The ranks of one communicator, and what they did on it."""

    communicator: str
    size: int
    job_ranks: dict[int, int]  # of the ranks that have recorded something
    calls: list[Call]
    transfers: list[Transfer]
    dropped: dict[int, int]  # events of each rank that are not there

    @property
    def missing(self) -> list[int]:
        """The ranks that there is no trace of."""
        return [rank for rank in range(self.size) if rank not in self.job_ranks]

    def name(self, rank: int) -> str:
        """Return what a rank is called: by its number in the job, where that is known."""
        return str(self.job_ranks.get(rank, rank))

    def whole_calls(self) -> Iterator[Call]:
        """Yield the calls that every rank has recorded from beginning to end."""
        for call in self.calls:
            if len(call.ranks) == self.size and all(rank.whole for rank in call.ranks.values()):
                yield call


@dataclass(frozen=True, eq=False)
class Run:
    """Everything in a trace."""

    source: str  # the file or folder
    communicators: list[TracedCommunicator]
    clock: dict[str, str]
    schedules: dict[str, str]  # the programs of all ranks in their text form, by digest

    @property
    def dropped(self) -> int:
        """Events that are not there."""
        return sum(sum(group.dropped.values()) for group in self.communicators)
