"""Runs a schedule once and captures what moves: which chunks, between which ranks, on which levels.

The contents of the chunks are not computed here: the page replays the messages itself, starting from the inputs. So a
capture consists of columns of numbers with one entry for each message, and a thousand ranks fit into one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unisono.errors import ScheduleError
from unisono.schedule import Chunks, Op, Schedule, Step
from unisono.schedule.network import run
from unisono.schedule.ops import COMBINE, RECV, RECV_REDUCE, SEND, count, listed

Column = NDArray[np.int32]
NEVER = -1  # the level of an event that did not happen, such as the receipt of a message in a deadlock


@dataclass(frozen=True)
class StepCapture:
    """The events of a run, in columns. Levels count from 1; the state on level 0 is the input.

    ``messages`` are in the order in which they are received: by level, then by rank, then in the order of the step.
    A message is sent on level ``sent``, as number ``out`` of the sends of its step, and received on level ``got``,
    which may be later, or NEVER. It carries ``amount`` chunks; ``sent_chunks`` and ``got_chunks`` hold their numbers
    on the sender and on the receiver, one message after the other. ``locals`` are copies and combines in the same
    form.
    """

    messages: dict[str, Column]
    locals: dict[str, Column]
    levels: list[list[int]]  # for each rank, the level on which each of its steps finished
    error: ScheduleError | None = None

    @property
    def last_level(self) -> int:
        """The level of the last event."""
        sent = self.messages["sent"]
        finished = max((levels[-1] for levels in self.levels if levels), default=0)
        return max(finished, int(sent.max()) if len(sent) else 0)


def capture_steps(schedule: Schedule) -> StepCapture:
    """Run the schedule at its declared channel depth, as the proof does; an error ends the capture."""
    patient = _Patient(**{field.name: getattr(schedule, field.name) for field in fields(Schedule)})
    memory = _CapturingMemory(patient)
    error = None
    try:
        run(patient, memory, depth=schedule.depth, end_step=memory.end_step)
    except ScheduleError as raised:
        error = raised
        memory.find_receivers()
    return memory.capture(patient.errors[0] if patient.errors else error)


@dataclass(frozen=True)
class _Patient(Schedule):
    """The same schedule; a program with an invalid step ends before that step instead of raising."""

    errors: list[ScheduleError] = field(default_factory=list)

    def program(self, rank: int) -> Iterator[Step]:
        try:
            yield from super().program(rank)
        except ScheduleError as error:
            self.errors.append(error)


@dataclass
class _Log:
    """Columns with one entry for each message or local op."""

    columns: dict[str, array[int]]
    sent_chunks: array[int] = field(default_factory=lambda: array("i"))
    got_chunks: dict[int, Chunks] = field(default_factory=dict)  # where they differ from the sender's
    starts: array[int] = field(default_factory=lambda: array("i"))

    def add(self, chunks: Chunks, **entry: int) -> int:
        """Append an entry and return its number."""
        for name, value in entry.items():
            self.columns[name].append(value)
        self.columns["amount"].append(count(chunks))
        self.starts.append(len(self.sent_chunks))
        self.sent_chunks.extend(listed(chunks))
        return len(self.starts) - 1

    def remove_last(self) -> None:
        """Remove the last entry."""
        for column in self.columns.values():
            column.pop()
        del self.sent_chunks[self.starts.pop() :]

    def ordered(self, *keys: str) -> dict[str, Column]:
        """Return the columns sorted by ``keys``, the most significant first."""
        columns = {name: np.array(column, np.int32) for name, column in self.columns.items()}
        order = np.lexsort([columns[key] for key in reversed(keys)]) if len(self.starts) else np.array([], np.int64)
        sent, got = self._chunks_in(order)
        ordered = {name: column[order] for name, column in columns.items()}
        return {**ordered, "sent_chunks": sent, "got_chunks": got}

    def _chunks_in(self, order: NDArray[np.int64]) -> tuple[Column, Column]:
        sent = np.array(self.sent_chunks, np.int32)
        got = sent.copy()
        for number, chunks in self.got_chunks.items():
            numbers = listed(chunks)
            got[self.starts[number] : self.starts[number] + len(numbers)] = numbers
        starts = np.array([*self.starts, len(sent)], np.int64)
        if len(order) == 0:
            return sent, got
        lengths = np.diff(starts)[order]
        # The position of every chunk: the start of its message, plus its offset in the message.
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        positions = np.repeat(starts[:-1][order], lengths) + within
        return sent[positions], got[positions]


class _CapturingMemory:
    """A memory for the network that holds no values and logs every access."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        names = ("src", "dst", "sent", "out", "got", "reduce", "place", "amount")
        self.messages = _Log({name: array("i") for name in names})
        self.local = _Log({name: array("i") for name in ("rank", "level", "reduce", "amount")})
        self.levels: list[list[int]] = [[] for _ in range(schedule.size)]
        self.sending = [0] * schedule.size  # messages of the current step so far
        self.received: list[list[int]] = [[] for _ in range(schedule.size)]  # in the current step
        self.done_here: list[list[int]] = [[] for _ in range(schedule.size)]

    def read(self, rank: int, chunks: Chunks) -> int:
        """Log a message; its receiver is known when it is received."""
        level = self.levels[rank][-1] + 1 if self.levels[rank] else 1
        out = self.sending[rank]
        self.sending[rank] += 1
        return self.messages.add(chunks, src=rank, dst=NEVER, sent=level, out=out, got=NEVER, reduce=0, place=0)

    def write(self, rank: int, op: Op, sent: Chunks, payload: Any) -> None:
        """Log the receiver of a message, or turn it into a local op."""
        if op.is_local:
            self.messages.remove_last()
            self.sending[rank] -= 1
            number = self.local.add(sent, rank=rank, level=NEVER, reduce=int(op.kind == COMBINE))
            self.local.got_chunks[number] = op.other
            self.done_here[rank].append(number)
            return
        columns = self.messages.columns
        columns["dst"][payload] = rank
        columns["reduce"][payload] = int(op.kind == RECV_REDUCE)
        columns["place"][payload] = len(self.received[rank])
        if op.chunks != sent and count(op.chunks) == count(sent):
            self.messages.got_chunks[payload] = op.chunks
        self.received[rank].append(payload)

    def end_step(self, rank: int, index: int, level: int) -> None:
        """Log the level of everything in this step."""
        self.levels[rank].append(level)
        self.sending[rank] = 0
        for number in self.received[rank]:
            self.messages.columns["got"][number] = level
        for number in self.done_here[rank]:
            self.local.columns["level"][number] = level
        self.received[rank].clear()
        self.done_here[rank].clear()

    def find_receivers(self) -> None:
        """Complete the messages that were never received, from the programs of their senders and receivers."""
        columns = self.messages.columns
        by_sender: dict[int, list[int]] = {}
        for number, src in enumerate(columns["src"]):
            by_sender.setdefault(src, []).append(number)
        by_pair: dict[tuple[int, int], list[int]] = {}
        for rank, numbers in by_sender.items():
            for number, receiver in zip(numbers, self._receivers(rank), strict=False):
                columns["dst"][number] = receiver
                by_pair.setdefault((rank, receiver), []).append(number)
        unreceived = {columns["dst"][number] for number, got in enumerate(columns["got"]) if got == NEVER}
        for rank in unreceived & set(range(self.schedule.size)):
            for src, kinds in self._receives(rank).items():
                for number, kind in zip(by_pair.get((src, rank), ()), kinds, strict=False):
                    if columns["got"][number] == NEVER:
                        columns["reduce"][number] = int(kind == RECV_REDUCE)

    def _receivers(self, rank: int) -> Iterator[int]:
        for step in self.schedule.program(rank):
            for op in step:
                if op.kind == SEND:
                    yield op.other  # type: ignore[misc]

    def _receives(self, rank: int) -> dict[int, list[str]]:
        """Return the kinds of the receives of a rank, by sender, in order: there is one FIFO for each sender."""
        kinds: dict[int, list[str]] = {}
        for step in self.schedule.program(rank):
            for op in step:
                if op.kind in (RECV, RECV_REDUCE):
                    kinds.setdefault(op.other, []).append(op.kind)  # type: ignore[arg-type]
        return kinds

    def capture(self, error: ScheduleError | None) -> StepCapture:
        """Return the logged events, in order."""
        columns = self.messages.columns
        # Messages that were never received come last.
        columns["order"] = array("i", (np.iinfo(np.int32).max if got == NEVER else got for got in columns["got"]))
        messages = self.messages.ordered("order", "dst", "place")
        del messages["order"], messages["place"]
        return StepCapture(messages, self.local.ordered("level", "rank"), self.levels, error)
