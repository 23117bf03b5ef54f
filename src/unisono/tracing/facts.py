"""Describes the calls and the rank that the numbers in events refer to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unisono.tracing.alignment import Offset


@dataclass(frozen=True)
class Origin:
    """The rank and the communicator of a part of a trace."""

    run: str  # the same for all parts that belong together
    communicator: str  # the same for all ranks of a communicator
    rank: int  # in the communicator
    size: int
    process: int
    processes: tuple[int, ...]  # of all ranks of the communicator
    job_rank: int  # of this process; its rank in the communicator if nothing else is known
    number: int = 0  # of the communicator, in this process


@dataclass(frozen=True)
class Hosts:
    """The hosts of a communicator."""

    names: tuple[str, ...]
    host_of: tuple[int, ...]  # the index of the host of each rank

    def name(self, rank: int) -> str:
        """Return the name of the host of a rank."""
        return self.names[self.host_of[rank]]

    def is_far(self, rank: int, peer: int) -> bool:
        """Return whether two ranks are on different hosts."""
        return self.host_of[rank] != self.host_of[peer]

    def ranks_on(self, host: int) -> list[int]:
        """Return the ranks on a host."""
        return [rank for rank, its_host in enumerate(self.host_of) if its_host == host]


@dataclass(frozen=True)
class InstructionFacts:
    """One instruction of a rank's program."""

    kind: str  # send, receive, reduce, copy, combine
    step: int  # of the program as its author wrote it
    sources: tuple[int, ...]  # ranks that it receives from
    to: tuple[int, ...]  # ranks that it sends to
    chunks: str  # such as 0-3,6
    chunk_bytes: tuple[int, ...]  # of each chunk, in all passes


@dataclass(frozen=True)
class PlanFacts:
    """The properties that all calls with the same plan share."""

    text: str  # the call as text
    collective: str
    algorithm: str  # with its options
    schedule: str  # digest of the programs of all ranks
    dtype: str
    count: int  # elements of the whole vector
    nbytes: int
    passes: int
    segment_bytes: int
    instructions: tuple[InstructionFacts, ...]
    op: str | None = None
    root: int | None = None
    codec: str | None = None
    skips_empty: bool = False  # messages without bytes are not sent
    wire_bytes: Callable[[int], int] = field(default=int)  # encoded size of a number of bytes

    def args(self) -> dict[str, Any]:
        """Return the arguments of a call in the trace."""
        said = {
            "collective": self.collective, "algorithm": self.algorithm, "count": self.count, "dtype": self.dtype,
            "bytes": self.nbytes, "op": self.op, "root": self.root, "codec": self.codec, "passes": self.passes,
            "ops": len(self.instructions), "schedule": self.schedule,
        }  # fmt: skip
        return {name: value for name, value in said.items() if value is not None}

    def message_bytes(self) -> Callable[[int, int], int]:
        """Return a function that computes the bytes that an instruction moves in a pass."""

        @lru_cache(maxsize=65536)
        def moved(instruction: int, number: int) -> int:
            done = number * self.segment_bytes
            chunks = self.instructions[instruction].chunk_bytes
            return sum(self.wire_bytes(min(max(length - done, 0), self.segment_bytes)) for length in chunks)

        return moved


@dataclass(frozen=True)
class Part:
    """The data of one rank for a trace, beside its events."""

    origin: Origin
    plans: Mapping[int, PlanFacts]
    schedules: Mapping[str, str]  # in their text form, by digest
    clock: Mapping[str, str]
    base_ns: int  # the time that counts as 0, the same for all parts of a run on a host
    began_ns: int
    ended_ns: int
    hosts: Hosts | None = None  # of the communicator, if the job is on several
    offsets: Sequence[Offset] = ()  # to the reference clock, if the job is on several hosts
