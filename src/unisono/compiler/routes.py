"""Assigns a channel to each message: there is one for each pair of ranks, and one from each rank to all others.

A chunk that is sent to all others in turn is written once for all of them to read. The readers must know that, so the
route of a message depends only on the program of its sender, which every rank can run.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import NamedTuple

from unisono.schedule import Chunks, Op, Schedule
from unisono.schedule.ops import SEND


class Sending(NamedTuple):
    """One send, or the sends of the same chunks to all others."""

    step: int
    chunks: Chunks
    to: tuple[int, ...]


class Routes:
    """The messages of a schedule and their channels."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.sent_by = lru_cache(maxsize=None)(self._sent_by)

    @cached_property
    def fewest_for_all(self) -> int:
        """The number of readers from which the channel to all is used: with one reader there is nothing to gain."""
        return max(2, self.schedule.size - 1)

    def linear(self, rank: int) -> Iterator[Sending | tuple[int, Op]]:
        """Yield the sends of a rank, grouped, and its other ops with their step, in order."""
        sends: list[tuple[int, Op]] = []
        for number, step in enumerate(self.schedule.program(rank)):
            for op in step:
                if op.kind == SEND:
                    sends.append((number, op))
                else:
                    yield from self._grouped(sends)
                    sends = []
                    yield number, op
        yield from self._grouped(sends)

    def _grouped(self, sends: list[tuple[int, Op]]) -> Iterator[Sending]:
        at = 0
        while at < len(sends):
            step, first = sends[at]
            group = [op for _, op in sends[at : at + self.fewest_for_all]]
            peers = tuple(int(op.other) for op in group)  # type: ignore[arg-type]
            same = all(op.chunks == first.chunks for op in group)
            if same and len(set(peers)) == self.fewest_for_all:
                yield Sending(step, first.chunks, peers)
                at += len(group)
            else:
                yield Sending(step, first.chunks, peers[:1])
                at += 1

    def _sent_by(self, rank: int) -> dict[int, list[bool]]:
        """Return for each peer whether the first, second, ... message to it goes through the channel to all."""
        found: dict[int, list[bool]] = {}
        for move in self.linear(rank):
            if isinstance(move, Sending):
                for peer in move.to:
                    found.setdefault(peer, []).append(len(move.to) > 1)
        return found
