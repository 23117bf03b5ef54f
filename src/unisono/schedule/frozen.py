"""A frozen schedule: the steps of all ranks as immutable data.

A program is a user's generator, and may yield other steps when it runs again: it may keep state, read the clock, or
return an exhausted generator. ``freeze`` runs the program of every rank exactly once and keeps its steps. The digest,
the proof and the compiler all read these steps, so that they refer to the same program.

The steps are packed into a few bytes per op: a ring of 512 ranks has a million ops, which take 5 MB and not 100.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import chain, islice, repeat
from typing import NamedTuple

from unisono.errors import InternalError, UsageError
from unisono.schedule import messages
from unisono.schedule.ops import COMBINE, COPY, RECV, RECV_REDUCE, SEND, Chunks, Op, Step, new_op
from unisono.schedule.schedule import Schedule

KINDS = (SEND, RECV, RECV_REDUCE, COPY, COMBINE)
CODES = {kind: code for code, kind in enumerate(KINDS)}
SENDING = CODES[SEND]
# Steps that are packed at a time: unpacked, an op takes twenty times the memory.
BURST = 4096
SHORT, LONG = "H", "i"  # how numbers are stored: in 16 bits where all of them fit


class Numbers(NamedTuple):
    """Whole numbers, packed."""

    code: str  # SHORT or LONG
    data: bytes

    def __iter__(self) -> Iterator[int]:  # type: ignore[override]
        return iter(memoryview(self.data).cast(self.code))  # type: ignore[call-overload]


class PackedProgram(NamedTuple):
    """The steps of one rank. A number c below 0 stands for several chunks: entry ``-1 - c`` of ``several``."""

    lengths: Numbers  # the number of ops of each step
    kinds: bytes
    chunks: Numbers
    others: Numbers
    several: tuple[Chunks, ...]

    def steps(self) -> Iterator[Step]:
        """Yield the steps."""
        kinds = map(KINDS.__getitem__, self.kinds)
        ops = map(new_op, repeat(Op), zip(kinds, self._chunks(self.chunks), self._chunks(self.others), strict=True))
        for length in self.lengths:
            yield tuple(islice(ops, length))

    def _chunks(self, numbers: Numbers) -> Iterator[Chunks]:
        if not self.several or numbers.code == SHORT:
            return iter(numbers)
        return (number if number >= 0 else self.several[-1 - number] for number in numbers)

    def messages(self) -> Iterator[int]:
        """Yield the number of chunks of each message that the rank sends."""
        if not self.several:
            return repeat(1, self.kinds.count(SENDING))
        sent = zip(self.kinds, self._chunks(self.chunks), strict=True)
        return (1 if isinstance(chunks, int) else len(chunks) for kind, chunks in sent if kind == SENDING)

    def digest(self) -> bytes:
        """Return a digest of the steps."""
        digest = hashlib.sha256(repr([len(self.lengths.data), len(self.kinds), self.several]).encode())
        for numbers in (self.lengths, self.chunks, self.others):
            digest.update(numbers.code.encode() + numbers.data)
        digest.update(self.kinds)
        return digest.digest()


@dataclass(frozen=True, eq=False)
class FrozenSchedule(Schedule):
    """A schedule whose programs have been run: ``program(rank)`` yields the same steps every time."""

    packed: tuple[PackedProgram | None, ...] = field(default=(), repr=False)
    label_: str = field(default="", repr=False)

    @property
    def label(self) -> str:
        """The name in tables and messages, as it was when the schedule was frozen: options may be mutable."""
        return self.label_

    def program(self, rank: int) -> Iterator[Step]:
        """Return the steps of a rank."""
        self.check_rank(rank)
        return self._packed(rank).steps()

    @cached_property
    def digest(self) -> bytes:
        """A digest of all steps of all ranks."""
        return hashlib.sha256(b"".join(self._packed(rank).digest() for rank in range(self.size))).digest()

    @cached_property
    def sent_messages(self) -> int:
        """The number of messages of all ranks."""
        return sum(self._packed(rank).kinds.count(SENDING) for rank in range(self.size))

    @cached_property
    def sent_chunks(self) -> tuple[int, ...]:
        """The number of chunks that each rank sends in all."""
        return tuple(sum(self._packed(rank).messages()) for rank in range(self.size))

    @cached_property
    def largest_message(self) -> int:
        """The number of chunks of the largest message of any rank."""
        return max(max(self._packed(rank).messages(), default=0) for rank in range(self.size))

    def alone(self, rank: int) -> FrozenSchedule:
        """Return the same schedule with the steps of only one rank: those of many ranks take memory."""
        packed = tuple(program if rank == other else None for other, program in enumerate(self.packed))
        return _frozen(self, packed, self.label)

    def _packed(self, rank: int) -> PackedProgram:
        return _present(self.packed[rank], self.label, rank)


def freeze(schedule: Schedule) -> FrozenSchedule:
    """Run the program of every rank once; raise ScheduleError at the first invalid step."""
    if isinstance(schedule, FrozenSchedule):
        return schedule
    label = schedule.label
    return _frozen(schedule, tuple(pack(schedule.program(rank)) for rank in range(schedule.size)), label)


def _frozen(schedule: Schedule, packed: tuple[PackedProgram | None, ...], label: str) -> FrozenSchedule:
    facts = {each.name: getattr(schedule, each.name) for each in fields(Schedule)}

    def make(rank: int) -> Iterator[Step]:
        return _present(packed[rank], label, rank).steps()

    return FrozenSchedule(**{**facts, "make": make, "packed": packed, "label_": label})


def _present(program: PackedProgram | None, label: str, rank: int) -> PackedProgram:
    if program is None:
        raise InternalError(messages.STEPS_NOT_KEPT(algorithm=label, rank=rank))
    return program


def pack(program: Iterable[Step]) -> PackedProgram:
    """Store steps in normal form."""
    steps = iter(program)
    lengths, kinds = array(LONG), bytearray()
    chunks, others = array(LONG), array(LONG)
    several: dict[Chunks, int] = {}
    try:
        while burst := list(islice(steps, BURST)):
            lengths.extend(map(len, burst))
            of_kind, about, with_whom = zip(*chain.from_iterable(burst), strict=True)
            kinds.extend(map(CODES.__getitem__, of_kind))
            chunks.extend(_numbers(about, several))
            others.extend(_numbers(with_whom, several))
    except OverflowError:
        raise UsageError(messages.TOO_LARGE_CHUNK()) from None
    return PackedProgram(_short(lengths), bytes(kinds), _short(chunks), _short(others), tuple(several))


def _numbers(named: Sequence[Chunks], several: dict[Chunks, int]) -> array[int]:
    try:
        return array(LONG, named)  # type: ignore[arg-type]
    except TypeError:
        return array(LONG, [one if type(one) is int else -1 - several.setdefault(one, len(several)) for one in named])


def _short(numbers: array[int]) -> Numbers:
    try:
        return Numbers(SHORT, array(SHORT, numbers).tobytes())
    except OverflowError:
        return Numbers(LONG, numbers.tobytes())
