"""A model of the survivors' agreement (engine/src/shm/survivors.cpp, docs/adr/0071), searched exhaustively.

Every rank takes these steps, each of which is one access to the shared memory or one question to the kernel:

    p  post the vote
    r  read the decision; if there is one, adopt it and end
    l  read the clock and ask which processes have ended
    v  read the votes (in the fine model, one rank at a time)
    w  write the proposal, if every other rank is settled or the timeout has passed
    c  compare-and-swap the decision, and continue at r

Between any two steps, any rank may die or be stopped, and a stopped rank may resume, as often as ``deaths`` and
``stops`` allow. An interleaving may delay a rank for any time, so a stop differs from a delay in one point only: the
timeout is longer than a delay, and passes only when every live rank that was never stopped has posted (with
``timeouts="any"``, it may pass at any time).
"""

from __future__ import annotations

from typing import NamedTuple

PROTOCOL = "prlvwc"
ENDED = "-"


class Rank(NamedTuple):
    """The state of one rank. Sets of ranks are masks."""

    at: str  # the next step; ENDED: it has adopted the decision, or is dead
    alive: bool = True
    stopped: bool = False
    posted: bool = False
    late: bool = False  # found by l: the timeout has passed
    lost: int = 0  # found by l
    members: int = 0  # found by v
    unsettled: bool = False  # found by v
    read: int = 0  # the votes that v has read so far, in the fine model
    proposal: int = 0
    adopted: int = -1


class State(NamedTuple):
    """The state of all ranks and of the shared word."""

    ranks: tuple[Rank, ...]
    decided: int = 0  # a rank, plus one
    deaths: int = 0
    stops: int = 0
    ever_stopped: int = 0  # a mask


class Found(NamedTuple):
    """The number of states, and the properties that do not hold."""

    states: int
    broken: frozenset[str]


def reach_all(before: list[list[int]], ends: list[int]) -> bool:
    """Return whether every state has a way to one of ``ends``; ``before`` lists the states before each state."""
    reached, waiting = set(ends), list(ends)
    while waiting:
        for each in before[waiting.pop()]:
            if each not in reached:
                reached.add(each)
                waiting.append(each)
    return len(reached) == len(before)


class Model:
    """The protocol for ``size`` ranks; ``mistakes`` are variations that make it wrong."""

    def __init__(
        self, size: int, *, deaths: int = 0, stops: int = 0, timeouts: str = "long", fine: bool = False,
        mistake: str = "",
    ) -> None:  # fmt: skip
        self.size, self.deaths, self.stops, self.fine = size, deaths, stops, fine
        self.any_timeout = timeouts == "any"
        self.mistake = mistake

    def search(self, until: str = "") -> Found:
        """Visit every state that can be reached, and check the properties in each; end when ``until`` is broken.

        The agreement terminates if every state has a way to an end: ranks look again and again, so that a scheduler
        that lets every rank run finds it.
        """
        first = State((Rank("p"),) * self.size)
        numbers, states, before = {first: 0}, [first], [[]]
        broken, ends = set(), []
        for number, state in enumerate(states):  # it grows
            broken |= self.broken_properties(state)
            if until in broken:
                return Found(len(states), frozenset(broken))
            if all(rank.at == ENDED for rank in state.ranks):
                ends.append(number)
            for each in map(self.canonical, self.following(state)):
                known = numbers.setdefault(each, len(states))
                if known == len(states):
                    states.append(each)
                    before.append([])
                before[known].append(number)
        if not reach_all(before, ends):
            broken.add("termination")
        return Found(len(states), frozenset(broken))

    def canonical(self, state: State) -> State:
        """Return a state that differs only in the numbers of the ranks, which mean nothing in the coarse model."""
        ranks = state.ranks
        if state.decided:  # no other proposal is read
            ranks = tuple(
                rank if number == state.decided - 1 else rank._replace(proposal=0)
                for number, rank in enumerate(ranks)
            )
        if self.fine or self.mistake:
            return state._replace(ranks=ranks)
        order = sorted(range(self.size), key=lambda number: (ranks[number], number != state.decided - 1))
        if order == list(range(self.size)):
            return state._replace(ranks=ranks)
        moved = [0] * (1 << self.size)  # masks
        for mask in range(1 << self.size):
            moved[mask] = sum(1 << new for new, old in enumerate(order) if mask >> old & 1)
        return state._replace(
            ranks=tuple(
                ranks[old]._replace(
                    lost=moved[ranks[old].lost], members=moved[ranks[old].members],
                    proposal=moved[ranks[old].proposal],
                    adopted=moved[ranks[old].adopted] if ranks[old].adopted >= 0 else -1,
                )
                for old in order
            ),
            decided=order.index(state.decided - 1) + 1 if state.decided else 0,
            ever_stopped=moved[state.ever_stopped],
        )  # fmt: skip

    def broken_properties(self, state: State) -> set[str]:
        """Return the names of the properties that do not hold in a state."""
        broken = set()
        adopted = {rank.adopted for rank in state.ranks if rank.adopted >= 0}
        if len(adopted) > 1:
            broken.add("agreement")
        for members in adopted:
            for number, rank in enumerate(state.ranks):
                is_member = members >> number & 1
                was_stopped = state.ever_stopped >> number & 1
                if is_member and not rank.posted:
                    broken.add("members have posted")
                if not is_member and rank.alive and not was_stopped and not self.any_timeout:
                    broken.add("validity")
        return broken

    def following(self, state: State):
        """Yield the states that can follow, except the same state."""
        for number, rank in enumerate(state.ranks):
            if not rank.alive:
                continue
            if state.deaths < self.deaths:
                dead = Rank(ENDED, False, posted=rank.posted, proposal=rank.proposal, adopted=rank.adopted)
                yield self.changed(state, number, dead, deaths=state.deaths + 1)
            if rank.stopped:
                yield self.changed(state, number, rank._replace(stopped=False))
                continue
            if rank.at == ENDED:
                continue
            if state.stops < self.stops:
                ever = state.ever_stopped | 1 << number
                yield self.changed(
                    state, number, rank._replace(stopped=True), stops=state.stops + 1, ever_stopped=ever
                )
            for each in self.step(state, number, rank):
                if each != state:
                    yield each

    def step(self, state: State, number: int, rank: Rank):
        """Yield the states after the next step of a rank."""
        if rank.at == "p":
            yield self.changed(state, number, rank._replace(at="r", posted=True))
        elif rank.at == "r":
            if state.decided:
                adopted = state.ranks[state.decided - 1].proposal
                yield self.changed(state, number, Rank(ENDED, posted=True, proposal=rank.proposal, adopted=adopted))
            else:
                yield self.changed(state, number, rank._replace(at="l"))
        elif rank.at == "l":
            lost = sum(1 << other for other, each in enumerate(state.ranks) if not each.alive)
            is_read_here = self.mistake != "the clock is read after the votes"
            for late in (False, True) if is_read_here and self.may_time_out(state) else (False,):
                yield self.changed(state, number, rank._replace(at="v", late=late, lost=lost))
        elif rank.at == "v":
            yield from self.read_votes(state, number, rank)
        elif rank.at == "w":
            if self.mistake == "the proposal is written after the decision":
                yield self.changed(state, number, rank._replace(at="c"))
            else:
                yield self.changed(state, number, rank._replace(at="c", proposal=rank.members))
        elif rank.at == "c":
            yield self.decide(state, number, rank)
        elif rank.at == "too late":
            yield self.changed(state, number, rank._replace(at="r", proposal=rank.members, members=0))

    def read_votes(self, state: State, number: int, rank: Rank):
        """Yield the states after votes were read: one of them, or all."""
        others = [rank.read] if self.fine else range(self.size)
        members, unsettled = rank.members, rank.unsettled
        for other in others:
            has_ended = rank.lost >> other & 1
            if state.ranks[other].posted and not has_ended:
                members |= 1 << other
            unsettled |= not state.ranks[other].posted and not has_ended
        if self.fine and rank.read + 1 < self.size:
            yield self.changed(state, number, rank._replace(members=members, unsettled=unsettled, read=rank.read + 1))
            return
        decides = not unsettled or rank.late or self.mistake == "votes are not awaited"
        if self.mistake == "only rank 0 decides" and number != 0:
            decides = False
        at, kept = ("w", members) if decides else ("r", 0)
        after = rank._replace(at=at, late=False, lost=0, members=kept, unsettled=False, read=0)
        yield self.changed(state, number, after)
        if self.mistake == "the clock is read after the votes" and self.may_time_out(state):
            yield self.changed(state, number, after._replace(at="w", members=members))

    def may_time_out(self, state: State) -> bool:
        """Return whether the timeout of a rank may have passed."""
        return self.any_timeout or all(
            rank.posted or not rank.alive or state.ever_stopped >> number & 1
            for number, rank in enumerate(state.ranks)
        )

    def decide(self, state: State, number: int, rank: Rank) -> State:
        """Return the state after the compare-and-swap."""
        wins = state.decided == 0 or self.mistake == "the decision is stored, not swapped"
        after = rank._replace(at="r", members=0)
        if self.mistake == "the proposal is written after the decision":
            after = rank._replace(at="too late")
        return self.changed(state, number, after, decided=number + 1 if wins else state.decided)

    @staticmethod
    def changed(state: State, number: int, rank: Rank, **others: int) -> State:
        """Return the state in which a rank has changed."""
        return state._replace(ranks=(*state.ranks[:number], rank, *state.ranks[number + 1 :]), **others)
