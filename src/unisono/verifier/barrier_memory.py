"""What a barrier is about: of whom a rank has heard.

Its messages are empty. What counts is that they come: who receives one has heard of its sender, and of everyone
that the sender had heard of when it was sent.
"""

from __future__ import annotations

from unisono.errors import GoalError
from unisono.schedule import Chunks, Op, Schedule
from unisono.verifier.symbols import listing, ranks_in


class HearingMemory:
    """For each rank a bit set of the ranks that it has heard of, itself included."""

    displaced = False

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.heard = [1 << rank for rank in range(schedule.size)]

    def read(self, rank: int, chunks: Chunks) -> int:
        """Return whom the rank can tell of."""
        return self.heard[rank]

    def write(self, rank: int, op: Op, sent: Chunks, payload: int) -> None:
        """Hear of them."""
        self.heard[rank] |= payload

    def check_goal(self) -> None:
        """Nobody goes on before having heard of everyone."""
        everyone = (1 << self.schedule.size) - 1
        for rank, heard in enumerate(self.heard):
            if heard != everyone:
                raise GoalError(
                    "it goes on without having heard of everyone",
                    algorithm=self.schedule.label, size=self.schedule.size, rank=rank,
                    expected=f"all {self.schedule.size} ranks have arrived",
                    found=f"it knows nothing of: {listing(ranks_in(everyone & ~heard))}",
                    hint=f"`unisono show` with --rank {rank} lists what this rank does",
                )  # fmt: skip

    def extra_slots(self) -> int:
        """Nothing is stored."""
        return 0

    def result_tree(self) -> str:
        """Nothing is added."""
        return ""
