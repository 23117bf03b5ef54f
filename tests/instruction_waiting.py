"""Executes only the waits of compiled programs: no data moves."""

from __future__ import annotations

from collections import deque

from unisono.compiler import Lowered


def completes(programs: list[Lowered], depth: int) -> bool:
    """Return whether all ranks finish with channels that hold ``depth`` messages."""
    size = len(programs)
    waiting: dict[tuple[int, int | None, int], deque[int]] = {}

    def queues(rank: int, channel) -> list[tuple[int, int | None, int]]:
        if channel.to_all:
            return [(rank, None, peer) for peer in programs[rank].near]
        return [(rank, channel.peer, channel.peer)]

    def can_run(rank: int, instruction) -> bool:
        for source in instruction.sources:
            if not waiting.get((source.peer, None if source.to_all else rank, rank)):
                return False
        full = instruction.to and any(len(waiting.get(q, ())) >= depth for q in queues(rank, instruction.to))
        return not full

    at = [0] * size
    moved = True
    while moved:
        moved = False
        for rank, program in enumerate(programs):
            while at[rank] < len(program.instructions) and can_run(rank, program.instructions[at[rank]]):
                instruction = program.instructions[at[rank]]
                for source in instruction.sources:
                    waiting[source.peer, None if source.to_all else rank, rank].popleft()
                for queue in queues(rank, instruction.to) if instruction.to else ():
                    waiting.setdefault(queue, deque()).append(1)
                at[rank] += 1
                moved = True
    return at == [len(program.instructions) for program in programs] and not any(waiting.values())
