"""Whether one rank held the others up, again and again."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from statistics import median

from unisono.tracing.run import TracedCommunicator
from unisono.tracing.waiting import Blame, blames, paces

# A rank is called slow if the others lost by it again and again. A call counts if they lost ...
OF_A_CALL = 0.1  # ... so much of it. There have to be ...
OF_ALL_CALLS = 0.1  # ... so many of all calls (a training step makes several, and a late rank is felt in the first),
FEWEST_CALLS = 3  # ... and so many. What was lost in the middle one of them, times their number, has to be ...
OF_ALL_TIME = 0.1  # ... so much of the time of all calls, of which one may be very long: the middle one times all,
TIMES_THE_NEXT = 3  # ... and so many times what was lost by any other rank.
# It is slow inside its calls only if it takes so many times as long for what it does as the others do.
PACE = 1.5


@dataclass(frozen=True)
class SlowRank:
    """A rank that the others waited for."""

    rank: int
    waited_ns: int  # of each such call, what the rank lost that lost most by it; added up
    calls: int  # in which the others waited for it a good part of the time
    of_calls: int
    late_ns: int  # of that, because it was in no call: it came late
    slow_ns: int  # because it was slow inside of them


def losses(found: list[Blame]) -> dict[tuple[int, int], Counter[str]]:
    """Return for each call and culprit what the rank lost that lost most by it: in all, and by which kind."""
    by_waiter: dict[tuple[int, int], dict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for blame in found:
        by_waiter[blame.call, blame.culprit][blame.waiter][blame.how] += blame.ns
    return {key: max(waiters.values(), key=lambda lost: lost.total()) for key, waiters in by_waiter.items()}


def slow_rank(group: TracedCommunicator) -> SlowRank | None:
    """Return the rank that held the others up again and again, if there is one that stands out."""
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
    """Return what the numbers would add up to if all were like the middle one: a few large ones do not count."""
    return median(values) * len(values)
