"""Prove a schedule: play it once with symbols, look at what everyone holds in the end, and count.

One run is a proof for all interleavings (see schedule/network.py for why).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from unisono import collectives
from unisono.collectives import EVERYONE_ALL, Collective
from unisono.errors import DeadlockError, GoalError, ScheduleError, UsageError
from unisono.schedule import Schedule
from unisono.schedule.network import Traffic, run
from unisono.verifier.memory import SymbolicMemory
from unisono.verifier.symbols import describe, listing, ranks_in

# A bound missed by this factor is said to be far away.
FAR = 2


@dataclass(frozen=True)
class Proof:
    """A schedule that is right, and the facts that follow from it.

    Bytes are exact parts of the vector: 8/5 means 1.6 times its length. "Least" is the lower bound that holds
    for every algorithm of the collective.
    """

    algorithm: str
    size: int
    depth: int | None  # proved at this channel depth, and so at every greater one
    chunks: int
    steps: int  # of the rank that has the most
    levels: int  # the longest path of steps and messages
    rounds: int  # if a rank can send one message and receive one at a time
    messages: int  # of all ranks
    messages_per_rank: int  # sent by the rank that sends the most
    sent: Fraction  # bytes sent by the rank that sends the most
    received: Fraction
    sent_total: Fraction  # by all ranks; as much is received
    largest_message: Fraction  # what a channel must be able to hold
    least_rounds: int
    least_bytes: Fraction
    extra_memory: Fraction  # of the rank that needs the most, beside its input and output
    # Whether blocks must have equal lengths, as some slot holds a block on its way that is not its own.
    equal_blocks_only: bool
    tree: str  # how chunk 0 of the result is added up; the same on every rank

    @property
    def busiest(self) -> Fraction:
        """Bytes that the busiest rank sends or receives, whichever is more."""
        return max(self.sent, self.received)

    @property
    def latency_ratio(self) -> float:
        """How many times the least possible rounds are needed (1.0 is perfect)."""
        return self.rounds / self.least_rounds if self.least_rounds else 1.0

    @property
    def bandwidth_ratio(self) -> float:
        """How many times the least possible bytes the busiest rank sends or receives (1.0 is perfect)."""
        return float(self.busiest / self.least_bytes) if self.least_bytes else 1.0

    @property
    def remarks(self) -> list[str]:
        """What a reader should know though the algorithm is right: the bounds that it is far away from."""
        found = []
        if self.bandwidth_ratio >= FAR:
            found.append(
                f"far from the bandwidth bound: the busiest rank moves {self.bandwidth_ratio:.1f} times the bytes "
                f"it must ({self.busiest} of the vector, where {self.least_bytes} would do)"
            )
        if self.latency_ratio >= FAR:
            found.append(f"far from the latency bound: {self.rounds} rounds, where {self.least_rounds} may do")
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return the facts as plain data, fractions as text."""
        return {
            **{name: str(v) if isinstance(v, Fraction) else v for name, v in asdict(self).items()},
            "latency_ratio": self.latency_ratio, "bandwidth_ratio": self.bandwidth_ratio, "remarks": self.remarks,
        }  # fmt: skip


def prove(schedule: Schedule, depth: int | None = 1) -> Proof:
    """Prove the schedule, or raise the ScheduleError that says what is wrong with it.

    ``depth`` is how many messages a channel holds; None is unbounded. What is proved at depth 1, the strictest,
    holds at every depth.
    """
    collective = collectives.find(schedule.collective)
    if depth is not None and depth < 1:
        raise UsageError(f"{schedule.label}: channels of depth {depth}; expected 1 or more, or None for unbounded")
    collective.check_layout(schedule)
    with _garbage_collection_paused():
        memory = SymbolicMemory(schedule, collective)
        try:
            traffic = run(schedule, memory, depth)
        except DeadlockError as error:
            raise _with_needed_depth(error, schedule, collective, depth) from None
        _check_goal(schedule, collective, memory)
        return _facts(schedule, collective, memory, traffic, depth)


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """A proof makes a million small tuples and no cycles: looking for cycles among them costs a fifth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def trees(schedule: Schedule) -> list[str]:
    """Return for every chunk of a reduced result how it is added up, with all brackets."""
    collective = collectives.find(schedule.collective)
    collective.check_layout(schedule)
    memory = SymbolicMemory(schedule, collective)
    run(schedule, memory)
    found: dict[int, str] = {}
    for rank, row in enumerate(memory.rows):
        for slot in collective.held_after(rank, schedule.size, schedule.chunks, schedule.root or 0):
            if slot not in found:
                found[slot] = memory.symbols.expression(row[slot])
    return [found[slot] for slot in sorted(found)]


def _check_goal(schedule: Schedule, collective: Collective, memory: SymbolicMemory) -> None:
    """Compare what every rank holds with the post-condition, and rank with rank (agreement)."""
    size, chunks, root = schedule.size, schedule.chunks, schedule.root or 0
    symbols = memory.symbols
    same_for_all = collective.in_place and collective.after == EVERYONE_ALL
    first_with: dict[int, tuple[int, int]] = {}  # of each chunk of a shared result: who was seen first, with what
    for rank, row in enumerate(memory.rows):
        if rank > 0 and same_for_all and row[:chunks] == memory.rows[0][:chunks]:
            continue  # the same symbols as on rank 0, which were looked at
        for slot, wanted in collective.goal(rank, size, chunks, root):
            symbol = row[slot]
            found = symbols.value(symbol)
            if found != wanted and (collective.carries_data or found.ranks != wanted.ranks):
                missing = wanted.ranks & ~found.ranks
                raise GoalError(
                    f"chunk {slot} does not hold the result" if collective.carries_data
                    else "it goes on without having heard of everyone",
                    algorithm=schedule.label, size=size, rank=rank, chunk=slot, expected=describe(wanted),
                    found=describe(found)
                    + (f"; missing: {listing(ranks_in(missing))}" if missing and found.ranks else ""),
                    hint=f"`unisono show` with --rank {rank} lists what this rank does",
                )  # fmt: skip
            if collective.reduces and collective.carries_data:
                other, other_symbol = first_with.setdefault(slot, (rank, symbol))
                if symbol != other_symbol:
                    raise GoalError(
                        f"chunk {slot} is added up in another order than on rank {other}: same numbers, other bits",
                        algorithm=schedule.label, size=size, rank=rank, chunk=slot,
                        expected=f"as on rank {other}: {symbols.expression(other_symbol, 400)}",
                        found=f"on rank {rank}: {symbols.expression(symbol, 400)}",
                        hint="let every rank add in the same order (receive into scratch, then combine in rank "
                        "order), or let one rank add and send the result",
                    )  # fmt: skip


def _facts(
    schedule: Schedule, collective: Collective, memory: SymbolicMemory, traffic: Traffic, depth: int | None
) -> Proof:
    size = schedule.size
    part = Fraction(1, schedule.chunks) if collective.carries_data else Fraction(0)
    shown = next(
        (slot, rank)
        for rank in range(size)
        for slot in collective.held_after(rank, size, schedule.chunks, schedule.root or 0)
    )
    return Proof(
        algorithm=schedule.label, size=size, depth=depth, chunks=schedule.chunks,
        steps=max(traffic.steps), levels=traffic.levels, rounds=traffic.rounds,
        messages=sum(traffic.sent_messages), messages_per_rank=max(traffic.sent_messages),
        sent=max(traffic.sent_chunks) * part, received=max(traffic.received_chunks) * part,
        sent_total=sum(traffic.sent_chunks) * part,
        largest_message=traffic.largest_message * part,
        least_rounds=collective.least_rounds(size), least_bytes=collective.least_bytes(size),
        extra_memory=memory.extra_slots() * part, equal_blocks_only=memory.displaced,
        tree=memory.symbols.expression(memory.rows[shown[1]][shown[0]]),
    )  # fmt: skip


def _with_needed_depth(
    error: DeadlockError, schedule: Schedule, collective: Collective, depth: int | None
) -> DeadlockError:
    """Say whether deeper channels would help, and how deep they would have to be."""
    if depth is None:
        return error
    parts = error.parts()
    if not _completes(schedule, collective, None):
        return DeadlockError(f"{error.what}; deeper channels do not help", **parts)
    too_small, enough = depth, depth + 1
    while not _completes(schedule, collective, enough):
        too_small, enough = enough, 2 * enough
    while enough - too_small > 1:
        middle = (too_small + enough) // 2
        if _completes(schedule, collective, middle):
            enough = middle
        else:
            too_small = middle
    parts["hint"] = (
        f"receive before sending more, send several chunks as one message, or ask for channels of depth {enough}"
    )
    return DeadlockError(f"{error.what}; channels of depth {enough} would do", **parts)


def _completes(schedule: Schedule, collective: Collective, depth: int | None) -> bool:
    try:
        run(schedule, SymbolicMemory(schedule, collective), depth)
    except ScheduleError:
        return False
    return True
