"""Finds a straggler: a rank that repeatedly held up the others."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from statistics import median

from unisono.tracing.run import TracedCommunicator
from unisono.tracing.waiting import Blame, blames, paces

# A rank is a straggler if the others repeatedly lost time because of it:
OF_A_CALL = 0.1  # a call counts if they lost at least this part of it;
OF_ALL_CALLS = (
    0.1  # at least this part of all calls must count (a training step makes several, and a late rank delays
)
# the first of them),
FEWEST_CALLS = 3  # and at least this number of calls.
OF_ALL_TIME = 0.1  # The median loss times the number of counted calls must be at least this part of the median length
# of a call times the number of calls (medians, since one call may be very long),
TIMES_THE_NEXT = 3  # and at least this multiple of the loss caused by any other rank.
# A rank is slow inside its calls only if its ops take at least this multiple of the time that the others need.
PACE = 1.5


@dataclass(frozen=True)
class SlowRank:
    """A straggler, and its cost.

    ``rank`` held up the others in ``calls`` of ``of_calls`` calls. ``waited_ns`` is the sum over these calls of the
    largest loss of a rank: during ``late_ns`` of it the straggler was in no call (it was late), during ``slow_ns`` it
    was inside the call (it was slow).
    """

    rank: int
    waited_ns: int
    calls: int
    of_calls: int
    late_ns: int
    slow_ns: int


def losses(found: list[Blame]) -> dict[tuple[int, int], Counter[str]]:
    """Return for each call and culprit the largest loss of a rank, by kind (late or slow)."""
    by_waiter: dict[tuple[int, int], dict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for blame in found:
        by_waiter[blame.call, blame.culprit][blame.waiter][blame.how] += blame.ns
    return {key: max(waiters.values(), key=lambda lost: lost.total()) for key, waiters in by_waiter.items()}


def slow_rank(group: TracedCommunicator) -> SlowRank | None:
    """Return the rank of ``group`` that repeatedly held up the others; None if no rank stands out."""
    lengths = {call.number: call.ns for call in group.calls}
    if len(lengths) < FEWEST_CALLS:
        return None
    pace = paces(group)
    counted = [blame for blame in blames(group) if blame.how == "late" or pace.get(blame.culprit, PACE) >= PACE]
    lost: dict[int, dict[int, Counter[str]]] = defaultdict(dict)  # by culprit, then by call
    for (call, culprit), kinds in losses(counted).items():
        lost[culprit][call] = kinds
    felt_by = {
        rank: [kinds for call, kinds in calls.items() if kinds.total() >= OF_A_CALL * lengths[call]]
        for rank, calls in lost.items()
    }
    often = max(FEWEST_CALLS, OF_ALL_CALLS * len(lengths))
    cost = {
        rank: _steadily([kinds.total() for kinds in felt]) for rank, felt in felt_by.items() if len(felt) >= often
    }
    if not cost:
        return None
    first, *others = sorted(cost, key=lambda rank: -cost[rank])
    felt = felt_by[first]
    if cost[first] < OF_ALL_TIME * _steadily(list(lengths.values())):
        return None
    if others and cost[first] < TIMES_THE_NEXT * cost[others[0]]:
        return None
    late, slow = (sum(kinds[how] for kinds in felt) for how in ("late", "slow"))
    return SlowRank(first, late + slow, len(felt), len(lengths), late, slow)


def _steadily(values: list[int]) -> float:
    """Return the median times the number of values, so that a few large values do not matter."""
    return median(values) * len(values)
