"""Assigns a channel to each message: there is one for each pair of ranks, and one from each rank to all near ones.

A chunk that is sent to all others of the sender's host in turn is written once for all of them to read; ranks of
other hosts get a message each. The readers must know that, so the route of a message depends only on the program of
its sender, which every rank can run, and on the hosts, which every rank knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from unisono.compiler.hosts import Hosts, near_peers
from unisono.schedule import Chunks, Op, Schedule
from unisono.schedule.ops import SEND, count


class Sending(NamedTuple):
    """One send, or the sends of the same chunks to all near ranks."""

    step: int
    chunks: Chunks
    to: tuple[int, ...]


class Routes:
    """The messages of a schedule and their channels."""

    def __init__(self, schedule: Schedule, hosts: Hosts | None = None) -> None:
        self.schedule = schedule
        self.hosts = hosts
        self.sent_by = lru_cache(maxsize=None)(self._sent_by)
        self.readers_of_all = lru_cache(maxsize=256)(self._readers_of_all)
        self._host_of = {} if hosts is None else {rank: ranks for ranks in hosts for rank in ranks}

    def near(self, rank: int) -> tuple[int, ...]:
        """Return the other ranks of the host of a rank, in ascending order."""
        return near_peers(rank, self.schedule.size, None if self.hosts is None else (self._host_of[rank],))

    def goes_to_all(self, writer: int, reader: int, number: int) -> bool:
        """Return whether message ``number`` of a writer to a reader goes through the channel to all."""
        return reader in self.readers_of_all(writer) and self.sent_by(writer)[reader][number]

    def _readers_of_all(self, rank: int) -> frozenset[int]:
        """Return the readers of a rank's channel to all; none with one reader, as there is nothing to gain."""
        near = self.near(rank)
        return frozenset(near if len(near) > 1 else ())

    def most_staged(self) -> int:
        """Return the chunks that the busiest rank puts into its staging area; one for all near ranks counts once."""
        return max(
            sum(count(move.chunks) for move in self.linear(rank) if isinstance(move, Sending))
            for rank in range(self.schedule.size)
        )

    def linear(self, rank: int) -> Iterator[Sending | tuple[int, Op]]:
        """Yield the sends of a rank, grouped, and its other ops with their step, in order."""
        sends: list[tuple[int, Op]] = []
        near = self.readers_of_all(rank)
        for number, step in enumerate(self.schedule.program(rank)):
            for op in step:
                if op.kind == SEND:
                    sends.append((number, op))
                else:
                    yield from _grouped(sends, near)
                    sends = []
                    yield number, op
        yield from _grouped(sends, near)

    def _sent_by(self, rank: int) -> dict[int, list[bool]]:
        """Return for each peer whether the first, second, ... message to it goes through the channel to all."""
        found: dict[int, list[bool]] = {}
        for move in self.linear(rank):
            if isinstance(move, Sending):
                for peer in move.to:
                    found.setdefault(peer, []).append(len(move.to) > 1)
        return found


def _grouped(sends: list[tuple[int, Op]], near: frozenset[int]) -> Iterator[Sending]:
    """Group sends of the same chunks to all near ranks; sends to far ranks among them go first, one by one."""
    at = 0
    while at < len(sends):
        step, first = sends[at]
        peers = _receivers(sends, at) if near else [int(first.other)]  # type: ignore[arg-type]
        if near and near.issubset(peers):
            for peer in peers:
                if peer not in near:
                    yield Sending(step, first.chunks, (peer,))
            yield Sending(step, first.chunks, tuple(peer for peer in peers if peer in near))
            at += len(peers)
        else:
            yield Sending(step, first.chunks, (peers[0],))
            at += 1


def _receivers(sends: list[tuple[int, Op]], at: int) -> list[int]:
    """Return the receivers of the chunks of one send and of the sends that follow it, each of them once."""
    chunks = sends[at][1].chunks
    peers: dict[int, None] = {}
    for index in range(at, len(sends)):
        op = sends[index][1]
        if op.chunks != chunks or op.other in peers:
            break
        peers[int(op.other)] = None  # type: ignore[arg-type]
    return list(peers)
