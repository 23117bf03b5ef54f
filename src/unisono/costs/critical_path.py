"""Finds the cost terms of a program by following its messages, rank by rank, under a few very different conditions.

The ranks run their ops in order, as the engine does: a chunk for all near ranks is written once, and messages between
hosts queue at the link that leaves the host of the sender and at the one that enters the host of the receiver.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from unisono.compiler import Hosts
from unisono.compiler.instructions import COMBINE, COPY, REDUCE, Instruction
from unisono.compiler.instructions import RECEIVE as RECEIVE_KIND
from unisono.compiler.lower import Limits, lower_steps
from unisono.compiler.routes import Routes
from unisono.costs.terms import Part, Path, Terms
from unisono.schedule import Schedule

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
    read: float
    written: float
    reduced: float
    crossing: float
    contended: float


# Where latency is everything, on links that are near or busy, or that are long; where the costs of messages are like
# the latency; where bytes are everything.
CONDITIONS = (
    Conditions(1, 1000, 5, 0.01, 0.01, 1e-4, 1e-4, 5e-5, 5e-5, 5e-5, 1e-3, 1e-3),
    Conditions(1, 30, 20, 0.01, 0.01, 1e-4, 1e-4, 5e-5, 5e-5, 5e-5, 1e-3, 1e-3),
    Conditions(1, 30, 20, 0.4, 0.4, 0.4, 0.4, 0.1, 0.2, 0.1, 10, 10),
    Conditions(1, 30, 20, 0.4, 0.4, 400, 400, 100, 200, 100, 10_000, 10_000),
)

# The kinds of actions of a rank, and of the nodes of a path.
SEND, TO_ALL, SEND_FAR, RECEIVE, LOCAL = KINDS = range(5)
ARRIVE_NEAR, ARRIVE_FAR, CROSS, MEET = range(5, 9)


class Action(NamedTuple):
    """A message that a rank sends or receives, or a local copy, and what its instruction does with memory.

    An instruction that receives and sends is two actions: a chunk that goes from one channel straight into the next
    is neither written to the arrays of the rank nor read from them.
    """

    kind: int
    peer: int = NOWHERE
    chunks: int = 0  # of the message
    read: int = 0  # chunks of the rank's arrays
    written: int = 0
    reduced: int = 0


NEAR, FAR = Action(ARRIVE_NEAR), Action(ARRIVE_FAR)


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
        for kind, peer, chunks, *_ in own:
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
    return sum(chunks * (size - 1 if kind == TO_ALL else 1) for kind, _, chunks, *_ in actions if kind <= SEND_FAR)


def _actions(routes: Routes, rank: int, home: dict[int, int]) -> list[Action]:
    """Return what a rank does, according to the compiler."""
    limits = Limits(largest_message=1, most_sent=1)  # on which instructions do not depend
    made = lower_steps(routes, rank, limits, None).instructions
    return [action for instruction in made for action in _actions_of(instruction, rank, home)]


def _actions_of(instruction: Instruction, rank: int, home: dict[int, int]) -> list[Action]:
    chunks = len(instruction.operands)
    # A chunk that replaces one that was just read is in the cache, and its bytes cost nothing more.
    written = sum(
        operand.out is not None
        and (instruction.kind == RECEIVE_KIND or operand.out not in (operand.left, operand.right))
        for operand in instruction.operands
    )
    reads = instruction.kind == REDUCE or not instruction.sources
    actions = [Action(RECEIVE, source.peer, chunks) for source in instruction.sources]
    if actions:
        # Further messages of an accumulation are only read, as one loop adds them all.
        reduced = chunks if instruction.kind == REDUCE else 0
        actions[-1] = actions[-1]._replace(read=chunks if reads else 0, written=written, reduced=reduced)
    elif instruction.kind in (COPY, COMBINE):
        actions.append(Action(LOCAL, chunks=chunks, reduced=chunks if instruction.kind == COMBINE else 0))
    if instruction.to is not None:
        peer, to_all = instruction.to
        kind = TO_ALL if to_all else SEND if home[peer] == home[rank] else SEND_FAR
        alone = not actions
        actions.append(Action(kind, peer, chunks, chunks if alone else 0, written if alone else 0))
    return actions


def _work(ranks: list[list[Action]]) -> Path:
    """Return everything that these ranks do in one pass."""
    return _path([action for actions in ranks for action in actions])


def _path(actions: Sequence[Action]) -> Path:
    """Return the counts of some actions, and of the messages that arrive."""
    number, chunks = [0] * (MEET + 1), [0] * (MEET + 1)
    for action in actions:
        number[action.kind] += 1
        chunks[action.kind] += action.chunks
    return Path(
        near=number[ARRIVE_NEAR], far=number[ARRIVE_FAR], sends=number[SEND] + number[TO_ALL] + number[SEND_FAR],
        receives=number[RECEIVE], locals=number[LOCAL],
        sent=chunks[SEND] + chunks[TO_ALL] + chunks[SEND_FAR], passing=chunks[SEND] + chunks[TO_ALL],
        received=chunks[RECEIVE],
        reduced=sum(action.reduced for action in actions), copied=chunks[LOCAL],
        read=sum(action.read for action in actions),
        written=sum(action.written for action in actions),
        crossings=number[CROSS] + number[MEET], crossing=chunks[CROSS] + chunks[MEET], contended=chunks[MEET],
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
        times = conditions
        self.latency = (times.near, times.far, times.message)
        self.events = (times.send, times.send, times.send, times.receive, 0.0)
        self.chunks = (times.sent, times.sent, times.sent, times.received, times.read + times.written)
        self.memory = (times.read, times.written, times.reduced)
        self.crossing = (times.crossing, times.crossing + times.contended)
        self.nodes: list[tuple[int, Action]] = []  # the node before it, and its action
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
        read_s, written_s, reduced_s = self.memory

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
                action = own[at]
                kind, peer, chunks, read, written, reduced = action
                node = last[rank]
                if kind == RECEIVE:
                    queue = queues.get((peer, rank))
                    if not queue:
                        waiting[peer, rank] = clock
                        break
                    arrival, message = queue.popleft()
                    if arrival > clock:
                        clock, node = arrival, message
                clock += event_s[kind] + chunk_s[kind] * chunks
                clock += read_s * read + written_s * written + reduced_s * reduced
                at += 1
                last[rank] = len(nodes)
                nodes.append((node, action))
                if kind == SEND:
                    nodes.append((len(nodes) - 1, NEAR))
                    post(rank, peer, clock + near_s, len(nodes) - 1)
                elif kind == SEND_FAR:
                    mine, theirs = home[rank], home[peer]
                    # A message occupies the link that leaves its host, and then, as its bytes arrive, the other one.
                    start, before, kind = clock, len(nodes) - 1, CROSS
                    if out[mine][0] > start:
                        start, before, other = out[mine]
                        kind = CROSS if other == theirs else MEET
                    nodes.append((before, Action(kind, chunks=chunks)))
                    end = start + message_s + self.crossing[kind - CROSS] * chunks
                    out[mine] = end, len(nodes) - 1, theirs
                    if into[theirs][0] > start:
                        start, before, other = into[theirs]
                        kind = CROSS if other == mine else MEET
                        nodes.append((before, Action(kind, chunks=chunks)))
                        end = start + message_s + self.crossing[kind - CROSS] * chunks
                    into[theirs] = end, len(nodes) - 1, mine
                    nodes.append((len(nodes) - 1, FAR))
                    post(rank, peer, end + far_s, len(nodes) - 1)
                    heappush(ready, (clock, rank))  # ranks that are behind go first
                    break
                elif kind == TO_ALL:
                    nodes.append((len(nodes) - 1, NEAR))
                    for other in self.hosts[home[rank]]:
                        if other != rank:
                            post(rank, other, clock + near_s, len(nodes) - 1)
            position[rank], clocks[rank] = at, clock
        self.ends = [node for _, node in ends]

    def path_to(self, node: int) -> Path:
        """Return what lies on the path that ends with a node."""
        actions = []
        while node != NOWHERE:
            node, action = self.nodes[node]
            actions.append(action)
        return _path(actions)
