"""Finds the longest paths of a program on a network whose ranks have ports, under very different conditions.

A *port* sends one message at a time, and another one receives one at a time, as the link of a GPU to its switch does.
A message leaves when the port of its sender is free; its head arrives after the latency, and its bytes then occupy
the port of the receiver. The NICs of a host are ports that some of its ranks share.

The time of a call on such a network is close to the largest of a few sums, each of which is linear in the costs of
the network: the paths. Every set of conditions contributes one of them.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import NamedTuple

from unisono.compiler import Hosts
from unisono.compiler.routes import Routes, Sending
from unisono.costs.terms import Part, Path
from unisono.schedule import Schedule
from unisono.schedule.ops import COMBINE, RECV_REDUCE, count

PASSES = 3  # on one host; between hosts, several passes are in flight
NOWHERE = -1


class Conditions(NamedTuple):
    """Costs of events, and of all bytes of a vector, relative to each other."""

    near: float
    far: float
    busy: float  # of a processor, for each message
    near_bytes: float
    far_bytes: float
    copied: float
    reduced: float


CONDITIONS = (
    Conditions(1, 8, 0.01, 1e-3, 8e-3, 1e-4, 1e-4),  # latency is everything
    Conditions(1, 1, 0.01, 1e-3, 1e-3, 1e-4, 1e-4),
    Conditions(0.3, 1, 1, 1e-3, 8e-3, 1e-4, 1e-4),  # processors are as slow as the network
    Conditions(1, 8, 0.01, 2, 16, 0.1, 0.1),  # latency and bytes are alike
    Conditions(1, 8, 0.01, 16, 128, 1, 1),
    Conditions(1, 8, 0.01, 1000, 8000, 10, 10),  # bytes are everything
    Conditions(1, 8, 0.01, 1000, 1000, 500, 500),
)
SEND, SEND_FAR, RECEIVE, REDUCE, COPY, ADD = range(6)  # actions of a rank, and nodes of a path
ARRIVE_NEAR, ARRIVE_FAR, PASS, CROSS = range(6, 10)
Action = tuple[int, int, int]  # kind, peer, chunks


class PortProgram:
    """The actions of all ranks of a program, on hosts with a number of NICs that their ranks share in blocks."""

    def __init__(self, schedule: Schedule, hosts: Hosts, nics: int) -> None:
        self.chunks, self.hosts, self.nics, self.per_host = schedule.chunks, len(hosts), nics, len(hosts[0])
        routes = Routes(schedule, tuple((rank,) for rank in range(schedule.size)))
        self.actions = [self._actions(routes, rank) for rank in range(schedule.size)]

    def _actions(self, routes: Routes, rank: int) -> list[Action]:
        actions = []
        for move in routes.linear(rank):
            if isinstance(move, Sending):
                is_far = move.to[0] // self.per_host != rank // self.per_host
                actions.append((SEND_FAR if is_far else SEND, move.to[0], count(move.chunks)))
            elif move[1].is_local:
                actions.append((ADD if move[1].kind == COMBINE else COPY, NOWHERE, count(move[1].chunks)))
            else:
                op = move[1]
                peer: int = op.other  # type: ignore[assignment]
                actions.append((REDUCE if op.kind == RECV_REDUCE else RECEIVE, peer, count(op.chunks)))
        return actions

    def nic(self, rank: int) -> int:
        """Return the NIC of a rank, among those of all hosts."""
        host, local = divmod(rank, self.per_host)
        return host * self.nics + local * self.nics // self.per_host

    @property
    def most_sent(self) -> int:
        """The chunks that a rank sends in one pass, at most."""
        return max(1, *(sum(chunks for kind, _, chunks in own if kind <= SEND_FAR) for own in self.actions))

    def busiest(self) -> Path:
        """Return what the busiest port carries in one pass; bytes between hosts count eight times as much."""
        near: dict[int, int] = {}  # by rank, negative for what it receives
        far: dict[int, int] = {}  # by NIC
        for rank, own in enumerate(self.actions):
            for kind, peer, chunks in own:
                if kind == SEND:
                    for port in (rank + 1, -peer - 1):
                        near[port] = near.get(port, 0) + chunks
                elif kind == SEND_FAR:
                    for port in (self.nic(rank) + 1, -self.nic(peer) - 1):
                        far[port] = far.get(port, 0) + chunks
        return Path(passing=max(near.values(), default=0), crossing=max(far.values(), default=0))

    def part(self, conditions: Conditions) -> Part:
        """Return the longest path under these conditions."""
        return _Run(self, conditions).part()


class _Run:
    """Runs a few passes of a program, and remembers for every event the one that it has waited for."""

    def __init__(self, program: PortProgram, conditions: Conditions) -> None:
        self.program, self.passes = program, PASSES if program.hosts == 1 else 1
        chunks = program.chunks
        self.latency = (conditions.near, conditions.far)
        self.bytes = (conditions.near_bytes / chunks, conditions.far_bytes / chunks)
        busy, copied, reduced = conditions.busy, conditions.copied / chunks, conditions.reduced / chunks
        self.event = (busy, busy, busy, busy, 0.0, 0.0)
        self.chunk = (copied, copied, copied, copied + reduced, copied, copied + reduced)
        self.nodes: list[tuple[int, int, int]] = []  # the node before, the kind, and the chunks
        # The time from which each port is free, and the node that says so: of ranks and, with negative numbers, NICs.
        self.out: dict[int, tuple[float, int]] = {}
        self.into: dict[int, tuple[float, int]] = {}

    def part(self) -> Part:
        """Return the longest path of the first pass, and what a further pass adds to it."""
        ends = self._execute()
        first, last = self._path_to(ends[0]), self._path_to(ends[-1])
        if self.passes == 1:
            return Part(first, Path())
        further = (max(0.0, (more - less) / (self.passes - 1)) for more, less in zip(last, first, strict=True))
        return Part(first, Path(*further))

    def _execute(self) -> list[int]:
        """Run all ranks; return the last node of each pass."""
        program, nodes, event, chunk = self.program, self.nodes, self.event, self.chunk
        size = len(program.actions)
        last, position, passes, clocks = [NOWHERE] * size, [0] * size, [0] * size, [0.0] * size
        ends = [(-1.0, NOWHERE)] * self.passes
        queues: dict[tuple[int, int], deque[tuple[float, int]]] = {}
        waiting: dict[tuple[int, int], float] = {}  # receivers, by channel: the time since which they wait
        ready = [(0.0, rank) for rank in range(size)]
        while ready:
            rank = heappop(ready)[1]
            clock, own, at = clocks[rank], program.actions[rank], position[rank]
            while True:
                if at == len(own):
                    number = passes[rank]
                    if clock > ends[number][0]:
                        ends[number] = clock, last[rank]
                    passes[rank] = number = number + 1
                    if number == self.passes or not own:
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
                clock += event[kind] + chunk[kind] * chunks
                at += 1
                last[rank] = len(nodes)
                nodes.append((node, kind, chunks))
                if kind <= SEND_FAR:
                    arrived = self._move(clock, last[rank], rank, kind, peer, chunks)
                    channel = (rank, peer)
                    if channel not in queues:
                        queues[channel] = deque()
                    queues[channel].append(arrived)
                    since = waiting.pop(channel, None)
                    if since is not None:
                        heappush(ready, (max(since, arrived[0]), peer))
                    heappush(ready, (clock, rank))  # ranks that are behind go first
                    break
            position[rank], clocks[rank] = at, clock
        return [node for _, node in ends]

    def _move(self, clock: float, node: int, rank: int, kind: int, peer: int, chunks: int) -> tuple[float, int]:
        """Let a message leave and arrive; return the time of its arrival, and the node."""
        nodes, is_far = self.nodes, kind == SEND_FAR
        leaves, arrives = [rank], [peer]
        if is_far:
            leaves.append(~self.program.nic(rank))
            arrives.append(~self.program.nic(peer))
        begin, before = max([(clock, node), *(self.out[port] for port in leaves if port in self.out)])
        bytes_s, moved = self.bytes[is_far] * chunks, CROSS if is_far else PASS
        nodes.append((before, moved, chunks))
        self.out.update(dict.fromkeys(leaves, (begin + bytes_s, len(nodes) - 1)))
        nodes.append((before, ARRIVE_FAR if is_far else ARRIVE_NEAR, 0))
        head = (begin + self.latency[is_far], len(nodes) - 1)
        begin, before = max([head, *(self.into[port] for port in arrives if port in self.into)])
        nodes.append((before, moved, chunks))
        arrived = begin + bytes_s, len(nodes) - 1
        self.into.update(dict.fromkeys(arrives, arrived))
        return arrived

    def _path_to(self, node: int) -> Path:
        """Return what lies on the path that ends with a node."""
        counts = [[0, 0] for _ in range(CROSS + 1)]
        while node != NOWHERE:
            node, kind, chunks = self.nodes[node]
            counts[kind][0] += 1
            counts[kind][1] += chunks
        send, send_far, receive, reduce, copy, add, near, far, passing, cross = counts
        return Path(
            near=near[0], far=far[0], sends=send[0] + send_far[0], receives=receive[0] + reduce[0],
            sent=send[1] + send_far[1], passing=passing[1], received=receive[1] + reduce[1],
            reduced=reduce[1] + add[1], copied=copy[1] + add[1], crossing=cross[1],
        )  # fmt: skip
