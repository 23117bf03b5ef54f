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
from unisono.collectives import Collective
from unisono.errors import DeadlockError, InternalError, ScheduleError, UsageError
from unisono.schedule import Schedule
from unisono.schedule.network import Traffic, run
from unisono.verifier.barrier_memory import HearingMemory
from unisono.verifier.memory import SymbolicMemory

# A bound missed by this factor is said to be far away.
FAR = 2
# More than this needs more memory than most machines have.
MOST_SLOTS = 50_000_000


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
    tree: str  # how the first chunk of the result is added up; the same on every rank

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
    if depth is not None and (type(depth) is not int or depth < 1):
        raise UsageError(f"{schedule.label}: channels of depth {depth!r}; expected 1 or more, or None for unbounded")
    check_provable(schedule)
    with _garbage_collection_paused():
        memory = _memory(schedule, collective)
        try:
            traffic = run(schedule, memory, depth)
        except DeadlockError as error:
            raise _with_needed_depth(error, schedule, collective, depth) from None
        memory.check_goal()
        return _facts(schedule, collective, memory, traffic, depth)


def check_provable(schedule: Schedule) -> None:
    """Raise UsageError if there is nothing to prove here, or too much."""
    collectives.find(schedule.collective).check_layout(schedule)
    if schedule.size * schedule.slots > MOST_SLOTS:
        raise UsageError(
            f"{schedule.label}: {schedule.size} ranks with {schedule.slots} slots each; a proof plays at most "
            f"{MOST_SLOTS:,} slots in all"
        )


def chunk_part(schedule: Schedule) -> Fraction:
    """Return which part of the vector a chunk is; messages without data have none."""
    carries_data = collectives.find(schedule.collective).carries_data
    return Fraction(1, schedule.chunks) if carries_data else Fraction(0)


def _memory(schedule: Schedule, collective: Collective) -> SymbolicMemory | HearingMemory:
    return SymbolicMemory(schedule, collective) if collective.carries_data else HearingMemory(schedule)


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """A proof makes a million small tuples and no cycles: looking for cycles among them is time lost."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def trees(schedule: Schedule) -> list[str]:
    """Return for every chunk of the result how it is added up, with all brackets."""
    collective = collectives.find(schedule.collective)
    collective.check_layout(schedule)
    if not collective.carries_data:
        return []
    memory = SymbolicMemory(schedule, collective)
    run(schedule, memory)
    memory.check_goal()
    return memory.result_trees()


def _facts(
    schedule: Schedule,
    collective: Collective,
    memory: SymbolicMemory | HearingMemory,
    traffic: Traffic,
    depth: int | None,
) -> Proof:
    size = schedule.size
    part = chunk_part(schedule)
    proof = Proof(
        algorithm=schedule.label, size=size, depth=depth, chunks=schedule.chunks,
        steps=max(traffic.steps), levels=traffic.levels, rounds=traffic.rounds,
        messages=sum(traffic.sent_messages), messages_per_rank=max(traffic.sent_messages),
        sent=max(traffic.sent_chunks) * part, received=max(traffic.received_chunks) * part,
        sent_total=sum(traffic.sent_chunks) * part,
        largest_message=traffic.largest_message * part,
        least_rounds=collective.least_rounds(size), least_bytes=collective.least_bytes(size),
        extra_memory=memory.extra_slots() * part, equal_blocks_only=memory.displaced,
        tree=memory.result_tree(),
    )  # fmt: skip
    if proof.busiest < proof.least_bytes or proof.rounds < proof.least_rounds:
        raise InternalError(
            f"{schedule.label} on {size} ranks was proved and beats a lower bound: one of the two is wrong. {proof}"
        )
    return proof


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
        run(schedule, _memory(schedule, collective), depth)
    except ScheduleError:
        return False
    return True
