"""Executes the programs of all ranks against each other, in one process.

*Channel*: a first-in-first-out queue from one rank to another, one for each ordered pair.
*Depth*: the number of messages that a channel holds before its sender must wait; None is unbounded.
*Level*: the number of a step on the longest path of steps and messages that lead to it, counted from 1. Levels are
the frames of a drawing: what happens on level k depends only on levels below k.

Ranks are deterministic and share nothing but channels (a Kahn process network). In whatever order they are executed,
each rank sees the same values and stops at the same op if they deadlock, so one execution stands for all
interleavings. Channels of bounded depth form such a network too.

Inside a step the network assumes the least that an engine can do: one op after the other, the sends first (the
normal form of a step), then everything else as written. An engine that does more at once only waits less. A program
that completes with channels of depth d completes with every greater depth, and with unbounded channels.

The network does not know what a message *means*: a Memory reads, stores and adds. The verifier's memory holds
symbols, the player's holds numbers.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, cast

from unisono.errors import ScheduleError, UnmatchedError
from unisono.schedule import network_messages as messages
from unisono.schedule.ops import COMBINE, COPY, SEND, Chunks, Op, Step, count, format_chunks
from unisono.schedule.schedule import Schedule
from unisono.schedule.standstill import Position, explain_standstill

# A message in a channel: the chunks as the sender names them, the payload that its memory read there, the level of
# the sending step, and the round in which a one-port network would deliver it.
InFlight = tuple[Chunks, Any, int, int]


class Memory(Protocol):
    """The contents of the slots of all ranks, and the way they are read, stored and added."""

    def read(self, rank: int, chunks: Chunks) -> Any:
        """Return the payload of a message, or the operand of a local op."""

    def write(self, rank: int, op: Op, sent: Chunks, payload: Any) -> None:
        """Carry out a receive or a local op: ``payload`` was read from the chunks ``sent``."""


@dataclass(frozen=True)
class Traffic:
    """The counts of one execution. Lists have an entry per rank; chunks count every chunk of a message."""

    steps: list[int]
    levels: int
    rounds: int
    sent_messages: list[int]
    sent_chunks: list[int]
    received_chunks: list[int]
    largest_message: int  # in chunks


@dataclass(slots=True)
class _Rank(Position):
    """The position of one rank, and its counts."""

    level: int = 0
    clock: int = 0
    sent_messages: int = 0
    sent_chunks: int = 0
    received_chunks: int = 0
    largest_message: int = 0


def _in_bursts(program: Iterator[Step], length: int = 8) -> Iterator[Step]:
    """Generate a program's steps a few in advance: switching ranks for each step is slow (cache misses)."""
    while burst := list(islice(program, length)):
        yield from burst


def run(
    schedule: Schedule,
    memory: Memory,
    depth: int | None = None,
    end_step: Callable[[int, int, int], None] | None = None,
    read_sent: Callable[[int, Chunks], Any] | None = None,
) -> Traffic:
    """Execute every program to its end and return the counts.

    ``end_step(rank, index, level)`` is called whenever a rank has finished a step; the index counts from 0.
    ``read_sent(rank, chunks)`` returns the payload of a message where sending is more than reading (a codec rounds).
    Raises UnmatchedError or DeadlockError where the programs do not fit each other, and passes on the errors of the
    memory.
    """
    network = _Network(schedule, memory, depth, end_step, read_sent)
    network.execute()
    network.check_empty()
    return network.traffic()


class _Network:
    """The ranks of a schedule, the channels between them, and the ranks that wait for a channel."""

    def __init__(
        self,
        schedule: Schedule,
        memory: Memory,
        depth: int | None,
        end_step: Callable[[int, int, int], None] | None,
        read_sent: Callable[[int, Chunks], Any] | None,
    ) -> None:
        self.schedule, self.memory, self.depth = schedule, memory, depth
        self.end_step, self.read_sent = end_step, read_sent or memory.read
        self.channels: dict[int, deque[InFlight]] = {}  # from src to dst: key src * size + dst
        self.waiting: dict[int, int] = {}  # the rank that waits for a change in this channel
        self.ready = list(range(schedule.size - 1, -1, -1))
        self.ranks = [_Rank() for _ in range(schedule.size)]

    def execute(self) -> None:
        """Run every rank until it ends; raise if some rank cannot."""
        schedule, ready, waiting = self.schedule, self.ready, self.waiting
        processes = [self._process(rank, state) for rank, state in enumerate(self.ranks)]
        while ready:
            rank = ready.pop()
            try:
                key = next(processes[rank], None)
            except ScheduleError as error:
                if error.step is None:  # from the memory; an error of the program itself has its location
                    error = error.at(rank=rank, step=self.ranks[rank].step, op=self.ranks[rank].op)
                raise error.at(algorithm=schedule.label, size=schedule.size) from error.__cause__
            if key is not None:
                waiting[key] = rank
        if waiting:
            raise explain_standstill(schedule, self.depth, self.ranks)

    def _process(self, rank: int, state: _Rank) -> Generator[int, None, None]:
        """Execute one rank; yield the key of a channel whenever the rank must wait for it."""
        # Everything is a local variable: this loop runs a million times in a proof.
        size, channels, waiting, ready = self.schedule.size, self.channels, self.waiting, self.ready
        read, write, read_sent, end_step = self.memory.read, self.memory.write, self.read_sent, self.end_step
        deepest = sys.maxsize if self.depth is None else self.depth
        level = 0
        # The one-port clock: in a round a rank sends one message and receives one. Its step began in round
        # `clock`; its last message so far left in round `left`, and its last one came in in round `arrived`.
        clock = left = arrived = 0
        sent_messages = sent_chunks = received_chunks = largest = 0
        for index, step in enumerate(_in_bursts(self.schedule.program(rank))):
            state.step = index
            reached = sending_level = level + 1
            done = clock
            arrivals = []
            for op in step:
                state.op = op
                kind, chunks, other = op
                if kind == SEND:
                    key = rank * size + other  # type: ignore[operator]
                    channel = channels.get(key)
                    if channel is None:
                        channel = channels[key] = deque()
                    while len(channel) >= deepest:
                        yield key
                    left = done = (left if left > clock else clock) + 1
                    channel.append((chunks, read_sent(rank, chunks), sending_level, done))
                    sent_messages += 1
                    amount = 1 if type(chunks) is int else len(chunks)  # type: ignore[arg-type]
                    sent_chunks += amount
                    if amount > largest:
                        largest = amount
                    if key in waiting:
                        ready.append(waiting.pop(key))
                elif kind == COPY or kind == COMBINE:
                    write(rank, op, chunks, read(rank, chunks))
                else:
                    key = other * size + rank  # type: ignore[operator]
                    while not (channel := channels.get(key)):
                        yield key
                    sent, payload, sent_level, arrival = channel.popleft()
                    if key in waiting:
                        ready.append(waiting.pop(key))
                    if sent_level > reached:
                        reached = sent_level
                    arrivals.append(arrival)
                    if sent != chunks and count(sent) != count(chunks):
                        raise _different_chunk_counts(cast("int", other), chunks, sent)
                    received_chunks += 1 if type(sent) is int else len(sent)  # type: ignore[arg-type]
                    write(rank, op, sent, payload)
            # The ops of a step happen together: its messages come in in the order in which they get here.
            for arrival in sorted(arrivals) if len(arrivals) > 1 else arrivals:
                arrived = arrival if arrival > arrived else arrived + 1
                if arrived > done:
                    done = arrived
            level, clock = reached, done
            if end_step is not None:
                end_step(rank, index, level)
        state.op = None
        state.level, state.clock, state.largest_message = level, clock, largest
        state.sent_messages, state.sent_chunks, state.received_chunks = sent_messages, sent_chunks, received_chunks

    def check_empty(self) -> None:
        """Raise UnmatchedError if a message is left in a channel."""
        for key, channel in self.channels.items():
            if channel:
                src, dst = divmod(key, self.schedule.size)
                never_received = messages.ONE_NEVER_RECEIVED if len(channel) == 1 else messages.NEVER_RECEIVED
                raise UnmatchedError(
                    never_received(count=len(channel), src=src, dst=dst),
                    algorithm=self.schedule.label, size=self.schedule.size, rank=src,
                    expected=messages.MATCHING_RECEIVE(src=src, dst=dst),
                    found=messages.LEFT_IN_CHANNEL(chunks=format_chunks(channel[0][0])),
                    hint=messages.RECEIVE_OR_NOT_SEND(rank=dst),
                )  # fmt: skip

    def traffic(self) -> Traffic:
        """Return the counts."""
        ranks = self.ranks
        return Traffic(
            steps=[rank.step + 1 for rank in ranks],
            levels=max(rank.level for rank in ranks),
            rounds=max(rank.clock for rank in ranks),
            sent_messages=[rank.sent_messages for rank in ranks],
            sent_chunks=[rank.sent_chunks for rank in ranks],
            received_chunks=[rank.received_chunks for rank in ranks],
            largest_message=max(rank.largest_message for rank in ranks),
        )


def _different_chunk_counts(peer: int, chunks: Chunks, sent: Chunks) -> UnmatchedError:
    return UnmatchedError(
        messages.OTHER_CHUNK_COUNT(rank=peer),
        expected=messages.CHUNK_COUNT(count=count(chunks), chunks=format_chunks(chunks)),
        found=messages.CHUNK_COUNT(count=count(sent), chunks=format_chunks(sent)),
        hint=messages.NAME_SAME_CHUNKS(),
    )
