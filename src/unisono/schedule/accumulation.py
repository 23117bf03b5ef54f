"""Accumulations: messages that a rank adds to the same chunks in immediate succession are added all at once.

This matters only for numbers of 16 and 8 bits. They are added as 32-bit numbers, and an accumulation is rounded once,
at its end, so a sum of many addends loses less. The bits depend on it, so accumulations are part of the meaning of a
program: the player, the verifier and the engine all follow the rule of this module.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from unisono.schedule.ops import RECV_REDUCE, Chunks, Op

LONGEST = 63  # messages


def may_continue(sources: Collection[int], source: int) -> bool:
    """Return whether a message of ``source`` joins an accumulation of ``sources``: one message of each rank."""
    return source not in sources and len(sources) < LONGEST


@dataclass
class Accumulation:
    """Follows the ops of one rank, sends included."""

    chunks: Chunks | None = None
    sources: set[int] = field(default_factory=set)

    def end(self) -> None:
        """End the accumulation: another op came between."""
        self.chunks = None

    def continues(self, op: Op) -> bool:
        """Record a receive or local op; return whether it continues the accumulation before it."""
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
