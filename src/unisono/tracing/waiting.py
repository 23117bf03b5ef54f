"""Finds the waits of ranks, and their causes.

In a ring, a late rank holds up its neighbour, which holds up the next one: all of them wait, each for another rank,
and all because of one. So each wait is traced to its cause: a rank that is waiting itself is not the cause, but the
rank that it waits for may be. The cause is a rank that is not waiting: it is working in a call (*slow*), or it is in
no call (*late*). No rank is blamed for the time between the arrival of a message and its notice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from statistics import median
from typing import Literal

from unisono.tracing.matching import messages_of
from unisono.tracing.run import TracedCommunicator, Wait

How = Literal["late", "slow"]
LONGEST_CHAIN = 200  # ranks in a chain of waits
PER_OP_BYTES = 512  # the fixed cost of an op, expressed in bytes


@dataclass(frozen=True, slots=True)
class Blame:
    """The time that a rank waited in a call because of another one."""

    call: int
    waiter: int
    culprit: int
    how: How
    ns: int


def waited_ns(group: TracedCommunicator) -> dict[tuple[int, int], int]:
    """Return the time that each rank waited directly for each other rank, which may not be the cause."""
    total: dict[tuple[int, int], int] = defaultdict(int)
    for call in group.calls:
        for rank in call.ranks.values():
            for wait in rank.waits:
                total[wait.rank, wait.peer] += wait.ns
    return dict(total)


def blames(group: TracedCommunicator) -> list[Blame]:
    """Return the waits by cause: one entry for each pair of ranks, call and kind."""
    causes = _Causes(group)
    found: list[Blame] = []
    for call in group.calls:
        total: dict[tuple[int, int, How], int] = defaultdict(int)
        for rank in call.ranks.values():
            for wait in rank.waits:
                for culprit, how, ns in causes.of(wait):
                    if culprit != wait.rank:
                        total[wait.rank, culprit, how] += ns
        found += [Blame(call.number, *key, ns) for key, ns in total.items()]
    return found


class _Causes:
    def __init__(self, group: TracedCommunicator) -> None:
        self.waits: dict[int, list[Wait]] = defaultdict(list)
        self.calls: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.sent_ns: dict[int, int] = {}  # when the message of a wait was sent
        for call in group.calls:
            for rank, mine in call.ranks.items():
                self.waits[rank] += mine.waits
                self.calls[rank].append((mine.begin_ns, mine.end_ns))
            for message in messages_of(call):
                for wait in message.received.waits:
                    if wait.reason == "message" and wait.peer == message.src:
                        self.sent_ns[id(wait)] = message.sent.end_ns
        for waits in self.waits.values():
            waits.sort(key=lambda wait: wait.begin_ns)
        for spans in self.calls.values():
            spans.sort()
        # The latest end so far, which ascends also if the waits of several passes overlap.
        self.wait_ends = {
            rank: list(accumulate((wait.end_ns for wait in waits), max)) for rank, waits in self.waits.items()
        }
        self.call_ends = {rank: [end for _, end in spans] for rank, spans in self.calls.items()}

    def of(self, wait: Wait) -> Iterator[tuple[int, How, int]]:
        """Yield the causes of a wait, each with its share of the time."""
        yield from self._follow(wait, wait.begin_ns, wait.end_ns, (wait.rank,))

    def _follow(self, wait: Wait, begin: int, end: int, before: tuple[int, ...]) -> Iterator[tuple[int, How, int]]:
        end = min(end, self.sent_ns.get(id(wait), end))  # after that the message was available
        peer = wait.peer
        if begin >= end:
            return
        if peer not in self.calls:  # the rank left no trace
            yield peer, "late", end - begin
            return
        waits, at = self.waits[peer], begin
        for number in range(bisect_right(self.wait_ends.get(peer, []), begin), len(waits)):
            other = waits[number]
            if other.begin_ns >= end or at >= end:
                break
            if other.end_ns <= at:
                continue
            yield from self._not_waiting(peer, at, max(at, other.begin_ns))
            until = min(end, other.end_ns)
            # A cycle: the clocks disagree slightly.
            if other.peer in before or other.peer == peer or len(before) >= LONGEST_CHAIN:
                yield from self._not_waiting(peer, max(at, other.begin_ns), until)
            else:
                yield from self._follow(other, max(at, other.begin_ns), until, (*before, peer))
            at = max(at, until)
        yield from self._not_waiting(peer, at, end)

    def _not_waiting(self, rank: int, begin: int, end: int) -> Iterator[tuple[int, How, int]]:
        """Yield the parts of an interval that a rank spent working in a call, and outside calls."""
        if begin >= end:
            return
        spans, inside = self.calls[rank], 0
        for number in range(bisect_right(self.call_ends[rank], begin), len(spans)):
            if spans[number][0] >= end:
                break
            inside += min(end, spans[number][1]) - max(begin, spans[number][0])
        if inside > 0:
            yield rank, "slow", inside
        if end - begin - inside > 0:
            yield rank, "late", end - begin - inside


def paces(group: TracedCommunicator) -> dict[int, float]:
    """Return for each rank the ratio of its time to the time that the others would have needed for the same ops.

    Ops of the same kind are compared, by their bytes. A root is not slow because every other rank waits for its data
    in a broadcast.
    """
    took: dict[tuple[int, str], int] = defaultdict(int)
    moved: dict[tuple[int, str], int] = defaultdict(int)
    for call in group.calls:
        for rank, mine in call.ranks.items():
            for op in mine.ops:
                took[rank, op.kind] += op.work_ns
                moved[rank, op.kind] += op.nbytes + PER_OP_BYTES
    paces: dict[int, float] = {}
    for rank in group.job_ranks:
        actual, usual = 0.0, 0.0
        for kind in {kind for one, kind in took if one == rank}:
            others = [took[key] / moved[key] for key in took if key[1] == kind and key[0] != rank]
            if others:
                actual += took[rank, kind]
                usual += median(others) * moved[rank, kind]
        paces[rank] = actual / usual if usual > 0 else 1.0
    return paces
