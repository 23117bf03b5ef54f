"""Play the programs of all ranks against each other, in one process.

*Channel*: a first-in-first-out queue from one rank to another, one for each ordered pair.
*Depth*: how many messages a channel holds before its sender must wait; None is unbounded.
*Level*: the number of a step on the longest path of steps and messages that lead to it. Levels are the frames
of a drawing: what happens on level k needs nothing but levels below k.

Ranks are deterministic and share nothing but channels (a Kahn process network). So whatever order we pick to
run them in, each one sees the same values, and stops at the same place if they deadlock: one run speaks for all
interleavings. Channels of bounded depth are such a network too.

Inside a step we assume the least that an engine can do: one op after the other, the sends first (which is the
normal form of a step), then everything else as written. An engine that does more at once only waits less. And whoever
gets through with channels of depth d gets through with every greater depth, and with unbounded ones.

What a message *means* is not known here: a Memory reads, stores and adds. The verifier's holds symbols, the
player's holds numbers.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, cast

from unisono.errors import DeadlockError, ScheduleError, UnmatchedError
from unisono.schedule.ops import COMBINE, COPY, SEND, Chunks, Op, Step, count, format_chunks
from unisono.schedule.schedule import Schedule

# What lies in a channel: the chunks as the sender names them, what its memory read there, the level of the
# sending step, and the round in which a one-port network would deliver it.
Message = tuple[Chunks, Any, int, int]


class Memory(Protocol):
    """What the slots of all ranks hold, and how it is read, stored and added."""

    def read(self, rank: int, chunks: Chunks) -> Any:
        """Return what is to be sent."""

    def write(self, rank: int, op: Op, sent: Chunks, payload: Any) -> None:
        """Carry out a receive or a local op: ``payload`` was read from the chunks ``sent``."""


@dataclass(frozen=True)
class Traffic:
    """What a run counted. Lists have an entry per rank; chunks count every chunk of a message."""

    steps: list[int]
    levels: int
    rounds: int
    sent_messages: list[int]
    sent_chunks: list[int]
    received_chunks: list[int]
    largest_message: int  # in chunks


class _Rank:
    """Where one rank stands, and what it has counted."""

    __slots__ = ("clock", "largest_message", "level", "op", "received_chunks", "sent_chunks", "sent_messages", "step")

    def __init__(self) -> None:
        self.step = -1
        self.op: Op | None = None  # the op that it waits in; None: it has finished
        self.level = self.clock = self.sent_messages = self.sent_chunks = self.received_chunks = 0
        self.largest_message = 0


def _in_bursts(program: Iterator[Step], length: int = 8) -> Iterator[Step]:
    """Make a program's steps some in advance: hopping from rank to rank for each step is slow (cache misses)."""
    while burst := list(islice(program, length)):
        yield from burst


def run(
    schedule: Schedule,
    memory: Memory,
    depth: int | None = None,
    end_step: Callable[[int, int, int], None] | None = None,
    read_sent: Callable[[int, Chunks], Any] | None = None,
) -> Traffic:
    """Play every program to its end and return what was counted.

    ``end_step(rank, index, level)`` is called whenever a rank has finished a step. ``read_sent(rank, chunks)`` says
    what is sent, where sending is more than reading (a codec rounds). Raises UnmatchedError or DeadlockError where
    the programs do not fit each other, and passes on what the memory refuses.
    """
    size = schedule.size
    channels: dict[int, deque[Message]] = {}  # from src to dst: key src * size + dst
    waiting: dict[int, int] = {}  # the rank that waits for something to change in this channel
    ready = list(range(size - 1, -1, -1))
    states = [_Rank() for _ in range(size)]
    read, write = memory.read, memory.write
    read_sent = read_sent or read
    deepest = sys.maxsize if depth is None else depth

    def process(rank: int, state: _Rank) -> Generator[int, None, None]:
        """One rank: yields the key of the channel that it must wait for."""
        level = 0
        # The one-port clock: in a round a rank sends one message and receives one. Its step began in round
        # `clock`; its last message so far left in round `left`, and its last one came in in round `arrived`.
        clock = left = arrived = 0
        messages = chunks_out = chunks_in = largest = 0
        for index, step in enumerate(_in_bursts(schedule.program(rank))):
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
                    messages += 1
                    amount = 1 if type(chunks) is int else len(chunks)  # type: ignore[arg-type]
                    chunks_out += amount
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
                        raise UnmatchedError(
                            f"the message from rank {other} has another number of chunks",
                            expected=f"{count(chunks)} (chunks {format_chunks(chunks)})",
                            found=f"{count(sent)} (chunks {format_chunks(sent)})",
                            hint="make the send and its receive name the same chunks",
                        )  # fmt: skip
                    chunks_in += 1 if type(sent) is int else len(sent)  # type: ignore[arg-type]
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
        state.level, state.clock = level, clock
        state.sent_messages, state.sent_chunks, state.received_chunks = messages, chunks_out, chunks_in
        state.largest_message = largest

    processes = [process(rank, state) for rank, state in enumerate(states)]
    while ready:
        rank = ready.pop()
        try:
            key = next(processes[rank], None)
        except ScheduleError as error:
            if error.step is None:  # from the memory; what the program itself raises says where
                error = error.at(rank=rank, step=states[rank].step, op=states[rank].op)
            raise error.at(algorithm=schedule.label, size=size) from error.__cause__
        if key is not None:
            waiting[key] = rank

    if waiting:
        _explain_standstill(schedule, depth, states)
    for key, channel in channels.items():
        if channel:
            src, dst = divmod(key, size)
            raise UnmatchedError(
                f"{len(channel)} message{'s' if len(channel) > 1 else ''} from rank {src} to rank {dst} "
                "sent but never received",
                algorithm=schedule.label, size=size, rank=src,
                expected=f"a recv or recv_reduce on rank {dst} with src={src}",
                found=f"chunk {format_chunks(channel[0][0])} left in the channel",
                hint=f"receive it on rank {dst}, or do not send it",
            )  # fmt: skip
    return Traffic(
        steps=[state.step + 1 for state in states],
        levels=max(state.level for state in states),
        rounds=max(state.clock for state in states),
        sent_messages=[state.sent_messages for state in states],
        sent_chunks=[state.sent_chunks for state in states],
        received_chunks=[state.received_chunks for state in states],
        largest_message=max(state.largest_message for state in states),
    )


def _explain_standstill(schedule: Schedule, depth: int | None, states: list[_Rank]) -> None:
    """Say why nobody can go on: somebody waits for a rank that has finished, or all wait in a circle."""
    stuck = {rank: cast("int", state.op.other) for rank, state in enumerate(states) if state.op is not None}
    for rank, peer in stuck.items():
        if peer not in stuck:
            state, op = states[rank], cast("Op", states[rank].op)
            full = op.kind == SEND
            raise UnmatchedError(
                f"rank {peer} has finished without {'receiving this' if full else 'sending this'}",
                algorithm=schedule.label, size=schedule.size, rank=rank, step=state.step, op=op,
                expected=f"a {'receive' if full else 'send'} on rank {peer} for each {op.kind} on rank {rank}",
                found=f"rank {peer} ended after {states[peer].step + 1} steps"
                + (f", and the channel of depth {depth} is full" if full else ""),
                hint=f"add the missing {'recv' if full else 'send'} on rank {peer}, or leave this op out",
            )  # fmt: skip
    rank = next(iter(stuck))
    seen: list[int] = []
    while rank not in seen:
        seen.append(rank)
        rank = stuck[rank]
    circle = seen[seen.index(rank) :]
    lines = [f"rank {r} waits in step {states[r].step} for rank {stuck[r]} (`{states[r].op}`)" for r in circle[:8]]
    if len(circle) > 8:
        lines.append(f"... and {len(circle) - 8} more")
    full = any(cast("Op", states[r].op).kind == SEND for r in circle)
    raise DeadlockError(
        f"{len(circle)} ranks wait for each other in a circle"
        + (f" at channel depth {depth}" if full else ""),
        algorithm=schedule.label, size=schedule.size, rank=rank, step=states[rank].step, op=states[rank].op,
        expected="every rank gets to its end",
        found="; ".join(lines),
        hint="receive before sending more, or put the send and the receive into one step"
        if full else "let one of them send first: a step sends before it receives",
    )  # fmt: skip
