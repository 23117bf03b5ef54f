"""Matches the sends of a recorded call with its receives.

There is one FIFO for each ordered pair of ranks: the first message that a rank sends to another in a pass of a call
is the first one that the other receives from it in the same pass.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from unisono.tracing.run import Call, Op


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A message of a collective."""

    src: int
    dst: int
    number: int  # index among the messages from src to dst in its pass
    sent: Op
    received: Op

    @property
    def sent_ns(self) -> int:
        """When it could be read: when the sender was done, or when the receiver began to read it, whichever is first.

        A rank that forwards a message does so before it stores it, so a receiver may read before the sender is done.
        """
        return min(self.sent.end_ns, self.received.begin_ns)


def messages_of(call: Call) -> list[Message]:
    """Return the messages of a call, of the passes that both ends recorded completely."""
    sent: dict[tuple[int, int, int], list[Op]] = defaultdict(list)  # pass, from, to
    received: dict[tuple[int, int, int], list[Op]] = defaultdict(list)
    for rank, mine in call.ranks.items():
        for number, ops in _whole_passes(mine.ops, call.ops_in_pass[rank]):
            for op in ops:
                for peer in op.to:
                    sent[number, rank, peer].append(op)
                for peer in op.sources:
                    received[number, peer, rank].append(op)
    return [
        Message(src, dst, number, one, other)
        for (in_pass, src, dst), ops in sent.items()
        for number, (one, other) in enumerate(zip(ops, received.get((in_pass, src, dst), ()), strict=False))
    ]


def _whole_passes(ops: Iterable[Op], expected: int) -> list[tuple[int, list[Op]]]:
    passes: dict[int, list[Op]] = defaultdict(list)
    for op in ops:
        if op.kind != "results":
            passes[op.number_of_pass].append(op)
    return [(number, found) for number, found in passes.items() if len(found) == expected]
