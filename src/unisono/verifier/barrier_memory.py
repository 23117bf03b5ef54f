"""The memory of a barrier: the ranks that each rank knows to have arrived.

The messages of a barrier are empty; only their arrival counts. A rank that receives one knows that the sender has
arrived, and so has every rank that the sender knew of when it sent.
"""

from __future__ import annotations

from unisono.errors import GoalError
from unisono.schedule import Chunks, Op, Schedule
from unisono.verifier import messages
from unisono.verifier.symbols import listing, ranks_in


class BarrierMemory:
    """For each rank a bit set of the ranks that it knows to have arrived, itself included."""

    displaced = False

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.arrived = [1 << rank for rank in range(schedule.size)]

    def read(self, rank: int, chunks: Chunks) -> int:
        """Return the ranks that the rank knows to have arrived."""
        return self.arrived[rank]

    def write(self, rank: int, op: Op, sent: Chunks, payload: int) -> None:
        """Add the ranks that the sender knew of."""
        self.arrived[rank] |= payload

    def check_goal(self) -> None:
        """Raise GoalError if a rank continues before it knows that every rank has arrived."""
        everyone = (1 << self.schedule.size) - 1
        for rank, arrived in enumerate(self.arrived):
            if arrived != everyone:
                raise GoalError(
                    messages.LEFT_EARLY(), algorithm=self.schedule.label, size=self.schedule.size, rank=rank,
                    expected=messages.ALL_ARRIVED(size=self.schedule.size),
                    found=messages.NOT_HEARD_OF(ranks=listing(ranks_in(everyone & ~arrived))),
                    hint=messages.SHOW_RANK(name="NAME", size=self.schedule.size, rank=rank),
                )  # fmt: skip

    def extra_slots(self) -> int:
        """Nothing is stored."""
        return 0

    def result_tree(self) -> str:
        """Nothing is added."""
        return ""
