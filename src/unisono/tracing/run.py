"""The contents of a trace, as data. All times are nanoseconds since one moment, which is the same for all ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from unisono.tracing.facts import Hosts

Reason = Literal["message", "room", "entry"]


@dataclass(frozen=True, slots=True, eq=False)
class Wait:
    """A wait of a rank for another one: for a message, for room for a message, or for its entry into the call."""

    rank: int
    peer: int
    reason: Reason
    begin_ns: int
    end_ns: int

    @property
    def ns(self) -> int:
        """Its length."""
        return self.end_ns - self.begin_ns


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One instruction in one pass. Its waits come first; its work begins at ``begin_ns``."""

    rank: int
    kind: str  # send, receive, reduce, copy, combine; results: the final work on the results
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
        """When the rank reached it."""
        return self.waits[0].begin_ns if self.waits else self.begin_ns

    @property
    def work_ns(self) -> int:
        """The duration of its work."""
        return self.end_ns - self.begin_ns


@dataclass(slots=True, eq=False)
class RankCall:
    """One call on one rank."""

    rank: int
    begin_ns: int
    end_ns: int
    ops: list[Op] = field(default_factory=list)  # in order
    waits: list[Wait] = field(default_factory=list)  # all of them; some belong to no op
    background: bool = False
    failed: bool = False
    unfinished: bool = False  # it was still running when the recording ended
    truncated: int = 0  # ops that were dropped

    @property
    def whole(self) -> bool:
        """Whether it was recorded completely."""
        return not (self.failed or self.unfinished or self.truncated)


@dataclass(frozen=True, eq=False)
class Call:
    """One collective, on all its ranks.

    ``number`` is the same on every rank. ``collective`` and ``algorithm`` are names; ``op``, ``root`` and ``codec``
    are those of the call, or None. It has ``count`` elements of type ``dtype`` in ``nbytes`` bytes, in ``passes``
    passes; ``ops_in_pass`` is the number of ops of each rank in a pass. ``schedule`` is the digest under which
    ``Run.schedules`` has the programs. ``ranks`` holds the call of each rank that recorded it.
    """

    number: int
    collective: str
    algorithm: str
    count: int
    dtype: str
    nbytes: int
    passes: int
    ops_in_pass: dict[int, int]
    schedule: str
    op: str | None
    root: int | None
    codec: str | None
    ranks: dict[int, RankCall]

    @cached_property
    def begin_ns(self) -> int:
        """When the first rank entered it."""
        return min(rank.begin_ns for rank in self.ranks.values())

    @cached_property
    def end_ns(self) -> int:
        """When the last rank left it."""
        return max(rank.end_ns for rank in self.ranks.values())

    @property
    def ns(self) -> int:
        """The time from the first entry to the last exit."""
        return self.end_ns - self.begin_ns

    @property
    def label(self) -> str:
        """Its name, such as all_reduce/ring."""
        return f"{self.collective}/{self.algorithm}"


@dataclass(frozen=True, slots=True, eq=False)
class Transfer:
    """A send or a recv, outside of collectives."""

    rank: int
    peer: int
    sending: bool
    tag: int
    nbytes: int
    number: int  # the same on both ends of a message
    begin_ns: int
    end_ns: int


@dataclass(frozen=True, eq=False)
class TracedCommunicator:
    """One communicator: its ranks, calls and transfers.

    ``communicator`` is its name and ``size`` its number of ranks. ``job_ranks`` has the rank in the job of each rank
    that recorded something. ``calls`` are the collectives and ``transfers`` the sends and receives. ``dropped`` has
    the number of dropped events of each rank. In a job on several hosts, ``hosts`` has the host of each rank, and
    ``uncertainties_ns`` the most by which the times of each rank are wrong because of the alignment of clocks.
    """

    communicator: str
    size: int
    job_ranks: dict[int, int]
    calls: list[Call]
    transfers: list[Transfer]
    dropped: dict[int, int]
    hosts: Hosts | None = None
    uncertainties_ns: dict[int, int] = field(default_factory=dict)

    @property
    def missing(self) -> list[int]:
        """The ranks without a trace."""
        return [rank for rank in range(self.size) if rank not in self.job_ranks]

    def number(self, rank: int) -> str:
        """Return the number of ``rank`` in the job, if known."""
        return str(self.job_ranks.get(rank, rank))

    def name(self, rank: int) -> str:
        """Return the name of ``rank``: its number in the job and, on several hosts, its host, such as "5 (b)"."""
        if self.hosts is None or len(self.hosts.names) == 1:
            return self.number(rank)
        return f"{self.number(rank)} ({self.hosts.name(rank).partition('.')[0]})"

    def uncertainty_ns(self, rank: int, peer: int) -> int:
        """Return the most by which the time between an event of ``rank`` and one of ``peer`` is wrong, in ns.

        It is 0 on one host, because its ranks have one clock.
        """
        if self.hosts is None or not self.hosts.is_far(rank, peer):
            return 0
        return self.uncertainties_ns.get(rank, 0) + self.uncertainties_ns.get(peer, 0)

    def sent_bytes(self) -> tuple[int, int]:
        """Return the bytes that the recorded messages moved inside hosts, and between hosts."""
        sent = [0, 0]
        for call in self.calls:
            for mine in call.ranks.values():
                for op in mine.ops:
                    for peer in op.to:
                        sent[self.hosts is not None and self.hosts.is_far(op.rank, peer)] += op.nbytes
        for one in self.transfers:
            if one.sending:
                sent[self.hosts is not None and self.hosts.is_far(one.rank, one.peer)] += one.nbytes
        return sent[0], sent[1]

    def whole_calls(self) -> Iterator[Call]:
        """Yield the calls that every rank recorded completely."""
        for call in self.calls:
            if len(call.ranks) == self.size and all(rank.whole for rank in call.ranks.values()):
                yield call


@dataclass(frozen=True, eq=False)
class Run:
    """Everything in a trace, as ``read_run`` returns it.

    ``source`` is the file or folder. ``communicators`` holds what the ranks of each communicator did. ``clock``
    describes the clock of the times. ``schedules`` holds the programs of all ranks in their text form, by digest.
    """

    source: str
    communicators: list[TracedCommunicator]
    clock: dict[str, str]
    schedules: dict[str, str]

    @property
    def dropped(self) -> int:
        """The number of dropped events."""
        return sum(sum(group.dropped.values()) for group in self.communicators)
