"""Finds the cost terms of a program by following its messages, rank by rank, under a few very different conditions.

The ranks run their ops in order, as the engine does: a chunk for all near ranks is written once, and messages between
hosts queue at the link that leaves the host of the sender and at the one that enters the host of the receiver.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import NamedTuple

from unisono.compiler import Hosts
from unisono.compiler.routes import Routes, Sending
from unisono.costs.terms import Part, Path, Terms
from unisono.schedule import Schedule
from unisono.schedule.accumulation import Accumulation
from unisono.schedule.ops import COMBINE, RECV_REDUCE, count

PASSES = 3  # the last ones show what a further pass adds
NOWHERE = -1


class Conditions(NamedTuple):
    """Times of events and chunks, relative to each other, under which the longest path is looked for."""

    near: float
    far: float
    message: float  # on the link of a host
    send: float
    receive: float
    sent: float
    received: float
    reduced: float
    copied: float
    crossing: float
    contended: float


# Where latency is everything; where the costs of messages are like the latency; where bytes are everything.
CONDITIONS = (
    Conditions(1, 30, 20, 0.01, 0.01, 1e-4, 1e-4, 1e-4, 1e-4, 1e-3, 1e-3),
    Conditions(1, 30, 20, 0.4, 0.4, 0.5, 0.5, 0.25, 0.5, 10, 10),
    Conditions(1, 30, 20, 0.4, 0.4, 500, 500, 250, 500, 10_000, 10_000),
)

# The kinds of actions of a rank, and of the nodes of a path: a node is (the node before it, its kind, its chunks).
SEND, TO_ALL, SEND_FAR, RECEIVE, REDUCE, COPY, ADD = KINDS = range(7)
ARRIVE_NEAR, ARRIVE_FAR, CROSS, MEET = range(7, 11)
Action = tuple[int, int, int]  # kind, peer, chunks


def terms_of(schedule: Schedule, hosts: Hosts | None = None) -> Terms:
    """Return the cost terms of a program; ``hosts`` are the ranks of each host, by default one host."""
    everyone = (tuple(range(schedule.size)),) if hosts is None else hosts
    routes = Routes(schedule, hosts)
    home = {rank: number for number, ranks in enumerate(everyone) for rank in ranks}
    actions = [_actions(routes, rank, home) for rank in range(schedule.size)]
    parts = (_part(actions, everyone, home, each) for each in CONDITIONS)
    work = [(_work([actions[rank] for rank in ranks]), len(ranks)) for ranks in everyone]
    out, into = [0] * len(everyone), [0] * len(everyone)
    most_sent = 1
    for rank, own in enumerate(actions):
        staged = 0
        for kind, peer, chunks in own:
            if kind <= SEND_FAR:
                staged += chunks
                if kind == SEND_FAR:
                    out[home[rank]] += chunks
                    into[home[peer]] += chunks
        most_sent = max(most_sent, staged)
    if len(everyone) == 1:  # as the compiler counts: a chunk for all counts for each
        most_sent = max(1, *(_sent_to_each(own, schedule.size) for own in actions))
    busiest, ranks = max(work, key=lambda each: (each[0].sent + each[0].received, each[0].sends + each[0].receives))
    return Terms(schedule.chunks, most_sent, tuple(parts), busiest, ranks, max(out + into))


def _sent_to_each(actions: list[Action], size: int) -> int:
    return sum(chunks * (size - 1 if kind == TO_ALL else 1) for kind, _, chunks in actions if kind <= SEND_FAR)


def _actions(routes: Routes, rank: int, home: dict[int, int]) -> list[Action]:
    """Return what a rank does; further messages of an accumulation are only read, as one loop adds them all."""
    actions = []
    accumulation = Accumulation()
    for move in routes.linear(rank):
        if isinstance(move, Sending):
            accumulation.end()
            kind = TO_ALL if len(move.to) > 1 else SEND if home[move.to[0]] == home[rank] else SEND_FAR
            actions.append((kind, move.to[0], count(move.chunks)))
        else:
            op = move[1]
            continues = accumulation.continues(op)
            if op.is_local:
                actions.append((ADD if op.kind == COMBINE else COPY, NOWHERE, count(op.chunks)))
            else:
                peer: int = op.other  # type: ignore[assignment]
                actions.append(
                    (REDUCE if op.kind == RECV_REDUCE and not continues else RECEIVE, peer, count(op.chunks))
                )
    return actions


def _work(ranks: list[list[Action]]) -> Path:
    """Return everything that these ranks do in one pass."""
    counts = [[0, 0] for _ in KINDS]
    for actions in ranks:
        for kind, _, chunks in actions:
            counts[kind][0] += 1
            counts[kind][1] += chunks
    return _path(counts)


def _path(counts: list[list[int]]) -> Path:
    send, to_all, send_far, receive, reduce, copy, add, *arrivals = counts
    near, far, cross, meet = arrivals or ([0, 0],) * 4
    return Path(
        near=near[0], far=far[0], sends=send[0] + to_all[0] + send_far[0], receives=receive[0] + reduce[0],
        locals=copy[0] + add[0],
        sent=send[1] + to_all[1] + send_far[1], passing=send[1] + to_all[1],
        received=receive[1] + reduce[1], reduced=reduce[1] + add[1], copied=copy[1] + add[1],
        crossings=cross[0] + meet[0], crossing=cross[1] + meet[1], contended=meet[1],
    )  # fmt: skip


def _part(actions: list[list[Action]], hosts: Hosts, home: dict[int, int], conditions: Conditions) -> Part:
    """Return the longest path of the first pass under these conditions, and what a further pass adds to it."""
    run = _Run(actions, hosts, home, conditions)
    run.execute()
    first, last = run.path_to(run.ends[0]), run.path_to(run.ends[-1])
    # The path through several passes may leave out something that the path through one has.
    further = (max(0.0, (more - less) / (PASSES - 1)) for more, less in zip(last, first, strict=True))
    return Part(first, Path(*further))


class _Run:
    """Runs several passes of a program, and remembers for every event the one it has waited for."""

    def __init__(self, actions: list[list[Action]], hosts: Hosts, home: dict[int, int], conditions: Conditions):
        self.actions, self.hosts, self.home = actions, hosts, home
        near, far, message, send, receive, sent, received, reduced, copied, crossing, contended = conditions
        self.latency = (near, far, message)
        self.events = (send, send, send, receive, receive, 0.0, 0.0)
        self.chunks = (sent, sent, sent, received, received + reduced, copied, copied + reduced)
        self.crossing = (crossing, crossing + contended)
        self.nodes: list[tuple[int, int, int]] = []
        self.ends: list[int] = []  # the last node of each pass

    def execute(self) -> None:
        size = len(self.actions)
        waiting: dict[tuple[int, int], float] = {}  # receivers, by channel: the time since which they wait
        queues: dict[tuple[int, int], deque[tuple[float, int]]] = {}
        last = [NOWHERE] * size  # node of each rank
        position, passes = [0] * size, [0] * size
        # The time from which each link is free, the node that uses it, and the host at its other end.
        out: list[tuple[float, int, int]] = [(0.0, NOWHERE, NOWHERE)] * len(self.hosts)
        into = list(out)
        ends: list[tuple[float, int]] = [(-1.0, NOWHERE)] * PASSES
        ready = [(0.0, rank) for rank in range(size)]  # in the order of the times at which they continue
        clocks = [0.0] * size
        nodes, home, actions = self.nodes, self.home, self.actions
        event_s, chunk_s = self.events, self.chunks
        near_s, far_s, message_s = self.latency

        def post(src: int, dst: int, arrival: float, node: int) -> None:
            channel = (src, dst)
            queue = queues.get(channel)
            if queue is None:
                queue = queues[channel] = deque()
            queue.append((arrival, node))
            since = waiting.pop(channel, None)
            if since is not None:
                heappush(ready, (since if since > arrival else arrival, dst))

        while ready:
            rank = heappop(ready)[1]
            clock = clocks[rank]
            own = actions[rank]
            at = position[rank]
            while True:
                if at == len(own):
                    number = passes[rank]
                    if clock > ends[number][0]:
                        ends[number] = clock, last[rank]
                    passes[rank] = number = number + 1
                    if number == PASSES or not own:
                        break
                    at = 0
                kind, peer, chunks = own[at]
                node = last[rank]
                if kind == RECEIVE or kind == REDUCE:
                    queue = queues.get((peer, rank))
                    if not queue:
                        waiting[peer, rank] = clock
                        break
                    arrival, message = queue.popleft()
                    if arrival > clock:
                        clock, node = arrival, message
                clock += event_s[kind] + chunk_s[kind] * chunks
                at += 1
                last[rank] = len(nodes)
                nodes.append((node, kind, chunks))
                if kind == SEND:
                    nodes.append((len(nodes) - 1, ARRIVE_NEAR, 0))
                    post(rank, peer, clock + near_s, len(nodes) - 1)
                elif kind == SEND_FAR:
                    mine, theirs = home[rank], home[peer]
                    start, before, kind = clock, len(nodes) - 1, CROSS
                    if out[mine][0] > start:
                        start, before, other = out[mine]
                        kind = CROSS if other == theirs else MEET
                    if into[theirs][0] > start:
                        start, before, other = into[theirs]
                        kind = CROSS if other == mine else MEET
                    end = start + message_s + self.crossing[kind - CROSS] * chunks
                    nodes.append((before, kind, chunks))
                    out[mine], into[theirs] = (end, len(nodes) - 1, theirs), (end, len(nodes) - 1, mine)
                    nodes.append((len(nodes) - 1, ARRIVE_FAR, 0))
                    post(rank, peer, end + far_s, len(nodes) - 1)
                    heappush(ready, (clock, rank))  # ranks that are behind go first
                    break
                elif kind == TO_ALL:
                    nodes.append((len(nodes) - 1, ARRIVE_NEAR, 0))
                    for other in self.hosts[home[rank]]:
                        if other != rank:
                            post(rank, other, clock + near_s, len(nodes) - 1)
            position[rank], clocks[rank] = at, clock
        self.ends = [node for _, node in ends]

    def path_to(self, node: int) -> Path:
        """Return what lies on the path that ends with a node."""
        counts = [[0, 0] for _ in range(MEET + 1)]
        while node != NOWHERE:
            node, kind, chunks = self.nodes[node]
            counts[kind][0] += 1
            counts[kind][1] += chunks
        return _path(counts)
