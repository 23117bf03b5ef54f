"""Runs: messages that a rank adds to the same chunks, one directly after the other, are added all at once.

It matters for numbers of 16 and 8 bits only. They are added as 32-bit numbers, and a run is rounded once, at its end:
so a sum of many addends loses less. As the bits depend on it, runs are part of what a program means: player, verifier
and engine keep to the same rule, which is this one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from unisono.schedule.ops import RECV_REDUCE, Chunks, Op

LONGEST = 63  # messages


def may_continue(sources: Collection[int], source: int) -> bool:
    """Whether a message of ``source`` belongs to a run that has messages of ``sources`` (each rank has one in it)."""
    return source not in sources and len(sources) < LONGEST


@dataclass
class Run:
    """Follows the ops of one rank. Tell it of every op, sends included."""

    chunks: Chunks | None = None
    sources: set[int] = field(default_factory=set)

    def end(self) -> None:
        """Something else was done: what comes next begins anew."""
        self.chunks = None

    def continues(self, op: Op) -> bool:
        """Take note of a receive or local op; return whether it belongs to the run before it."""
        kind, chunks, source = op
        if kind != RECV_REDUCE:
            self.chunks = None
            return False
        if chunks == self.chunks and may_continue(self.sources, source):  # type: ignore[arg-type]
            self.sources.add(source)  # type: ignore[arg-type]
            return True
        self.chunks = chunks
        self.sources = {source}  # type: ignore[arg-type]
        return False
