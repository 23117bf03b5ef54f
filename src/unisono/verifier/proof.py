"""Proves a schedule: executes it once on symbols, checks the slots of every rank at the end, and counts.

One execution is a proof for all interleavings (schedule/network.py gives the reason).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from unisono import collectives
from unisono.algorithms.scheduling import Program, schedule_of
from unisono.collectives import Collective
from unisono.errors import DeadlockError, InternalError, ScheduleError, UsageError
from unisono.schedule import Chunks, Op, Schedule
from unisono.schedule.network import Traffic, run
from unisono.schedule.network_messages import RECEIVE_FIRST
from unisono.schedule.schedule import DECLARED, DEEPEST, Depth
from unisono.verifier import messages
from unisono.verifier.barrier_memory import BarrierMemory
from unisono.verifier.memory import SymbolicMemory

# A bound that is missed by this factor gets a remark.
FAR = 2
# More than this needs more memory than most machines have.
MOST_SLOTS = 50_000_000


@dataclass(frozen=True)
class Proof:
    """A proof that a schedule is correct, and the facts that follow from it.

    ``prove`` returns one. Bytes are exact parts of the vector: 8/5 means 1.6 times its length.

    - ``algorithm`` is its name with its options, ``size`` the number of ranks, ``chunks`` that of chunks.
    - ``depth`` is the channel depth of the proof, which then holds at every greater one; None is unbounded.
    - ``steps`` counts the steps of the busiest rank, ``levels`` the longest path of steps and messages, and
      ``rounds`` the rounds if a rank can send one message and receive one at a time.
    - ``messages`` counts the messages of all ranks, ``messages_per_rank`` those that the busiest rank sends.
    - ``sent`` and ``received`` are the bytes of the rank that sends or receives the most, and ``sent_total`` those
      that all ranks send.
    - ``largest_message`` is the size that a channel must be able to hold.
    - ``least_rounds`` and ``least_bytes`` are the lower bounds that hold for every algorithm of the collective.
    - ``extra_memory`` is what the rank that needs the most uses beside its input and output.
    - ``equal_blocks_only`` says whether blocks must have equal lengths, because a slot holds a block on its way to
      another slot.
    - ``tree`` is the expression of the first chunk of the result, which is the same on every rank.
    """

    algorithm: str
    size: int
    depth: int | None
    chunks: int
    steps: int
    levels: int
    rounds: int
    messages: int
    messages_per_rank: int
    sent: Fraction
    received: Fraction
    sent_total: Fraction
    largest_message: Fraction
    least_rounds: int
    least_bytes: Fraction
    extra_memory: Fraction
    equal_blocks_only: bool
    tree: str

    @property
    def busiest(self) -> Fraction:
        """Bytes that the busiest rank sends or receives, whichever is more."""
        return max(self.sent, self.received)

    @property
    def latency_ratio(self) -> float:
        """Rounds divided by the least possible rounds (1.0 is optimal)."""
        return self.rounds / self.least_rounds if self.least_rounds else 1.0

    @property
    def bandwidth_ratio(self) -> float:
        """Bytes of the busiest rank divided by the least possible bytes (1.0 is optimal)."""
        return float(self.busiest / self.least_bytes) if self.least_bytes else 1.0

    @property
    def remarks(self) -> list[str]:
        """Remarks on a correct algorithm: the bounds that it misses by far."""
        found: list[str] = []
        if self.bandwidth_ratio >= FAR:
            ratio = f"{self.bandwidth_ratio:.1f}"
            found.append(messages.FAR_FROM_BANDWIDTH(ratio=ratio, bytes=self.busiest, least=self.least_bytes))
        if self.latency_ratio >= FAR:
            found.append(messages.FAR_FROM_LATENCY(rounds=self.rounds, least=self.least_rounds))
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return the facts as plain data, fractions as text."""
        return {
            **{name: str(v) if isinstance(v, Fraction) else v for name, v in asdict(self).items()},
            "latency_ratio": self.latency_ratio, "bandwidth_ratio": self.bandwidth_ratio, "remarks": self.remarks,
        }  # fmt: skip


def prove(
    program: Program, depth: Depth = DECLARED, *, size: int | None = None, root: int | None = None, **options: Any
) -> Proof:
    """Prove a program, or raise the ScheduleError that says what is wrong with it.

    ``program`` is a schedule, an algorithm, or the name of one (``"ring"``, ``"my_algo.py:zigzag"``). An algorithm
    needs a ``size``, the number of ranks; a schedule has one. ``root`` and ``options`` are those of the algorithm.

    ``depth`` is the number of messages that a channel holds: by default the depth that the algorithm declares, which
    is 1 unless it says otherwise; None is unbounded. A program that is proved at one depth is correct at every
    greater one.

    ScheduleError is raised if the program is wrong, and UsageError if the arguments cannot work. For example::

        proof = unisono.prove("ring", size=4)
        print(proof.rounds, proof.bandwidth_ratio)
    """
    schedule = schedule_of(program, "prove", size, root, options)
    collective = collectives.find(schedule.collective)
    depth = depth_of(schedule, depth)
    if depth is not None and (type(depth) is not int or depth < 1):
        raise UsageError(messages.BAD_DEPTH(algorithm=schedule.label, depth=repr(depth)))
    check_provable(schedule)
    with _garbage_collection_paused():
        memory = _memory(schedule, collective)
        try:
            traffic = run(schedule, memory, depth)
        except DeadlockError as error:
            raise _with_needed_depth(error, schedule, collective, depth) from None
        memory.check_goal()
        return _facts(schedule, collective, memory, traffic, depth)


def depth_of(schedule: Schedule, depth: Depth) -> int | None:
    """Return a depth as a number, or None for unbounded channels."""
    return schedule.depth if depth == DECLARED else depth


def check_provable(schedule: Schedule) -> None:
    """Raise UsageError if the schedule does not fit its collective, or is too large."""
    collectives.find(schedule.collective).check_layout(schedule)
    if schedule.size * schedule.slots > MOST_SLOTS:
        limit = f"{MOST_SLOTS:,}"
        raise UsageError(
            messages.TOO_MANY_SLOTS(algorithm=schedule.label, size=schedule.size, slots=schedule.slots, limit=limit)
        )


def chunk_part(schedule: Schedule) -> Fraction:
    """Return the fraction of the vector that a chunk is; 0 for messages without data."""
    carries_data = collectives.find(schedule.collective).carries_data
    return Fraction(1, schedule.chunks) if carries_data else Fraction(0)


def _memory(schedule: Schedule, collective: Collective) -> SymbolicMemory | BarrierMemory:
    return SymbolicMemory(schedule, collective) if collective.carries_data else BarrierMemory(schedule)


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Pause garbage collection: a proof makes a million small tuples and no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def trees(schedule: Schedule) -> list[str]:
    """Return the expression of every chunk of the result, with all brackets."""
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
    memory: SymbolicMemory | BarrierMemory,
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
        raise InternalError(messages.BEATS_BOUND(algorithm=schedule.label, size=size, proof=proof))
    return proof


class _NoMemory:
    """A memory that holds nothing: whether ranks deadlock does not depend on the content of messages."""

    def read(self, rank: int, chunks: Chunks) -> None:
        """Read nothing."""

    def write(self, rank: int, op: Op, sent: Chunks, payload: None) -> None:
        """Write nothing."""


def _with_needed_depth(
    error: DeadlockError, schedule: Schedule, collective: Collective, depth: int | None
) -> DeadlockError:
    """Return the error with the channel depth that avoids the deadlock, if there is one."""
    parts = error.parts()
    if depth is None or _deadlocks(schedule, None):
        return DeadlockError(messages.NO_DEPTH_HELPS(deadlock=error.what), **parts)
    enough = _needed_depth(schedule, depth)
    hint = (
        messages.DECLARE_DEPTH(depth=enough) if enough <= DEEPEST else messages.TOO_DEEP_TO_DECLARE(deepest=DEEPEST)
    )
    other = _error_at_depth(schedule, collective, enough)
    if other is not None:
        hint = messages.OTHER_ERROR_DEEPER(hint=RECEIVE_FIRST(), depth=enough, error=other.what)
    parts["hint"] = hint
    return DeadlockError(messages.DEPTH_HELPS(deadlock=error.what, depth=enough), **parts)


def _needed_depth(schedule: Schedule, too_small: int) -> int:
    """Return the smallest depth above ``too_small`` at which the ranks do not deadlock."""
    enough = too_small + 1
    while _deadlocks(schedule, enough):
        too_small, enough = enough, 2 * enough
    while enough - too_small > 1:
        middle = (too_small + enough) // 2
        if _deadlocks(schedule, middle):
            too_small = middle
        else:
            enough = middle
    return enough


def _deadlocks(schedule: Schedule, depth: int | None) -> bool:
    try:
        run(schedule, _NoMemory(), depth)
    except DeadlockError:
        return True
    except ScheduleError:
        return False
    return False


def _error_at_depth(schedule: Schedule, collective: Collective, depth: int) -> ScheduleError | None:
    memory = _memory(schedule, collective)
    try:
        run(schedule, memory, depth)
        memory.check_goal()
    except ScheduleError as error:
        return error
    return None
