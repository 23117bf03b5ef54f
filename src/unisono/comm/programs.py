"""Algorithms, proved and compiled for one rank: done once for each, and remembered."""

from __future__ import annotations

from dataclasses import dataclass

from unisono import _engine, collectives
from unisono.collectives import Collective
from unisono.comm.rounds import Rounds, rounds_last
from unisono.compiler import Lowered, lower
from unisono.errors import UsageError
from unisono.schedule import Schedule
from unisono.verifier import Proof, proof_of
from unisono.verifier.cache import content_digest


@dataclass(frozen=True)
class Compiled:
    """A proved schedule and this rank's part of it, ready to be executed."""

    schedule: Schedule
    collective: Collective
    proof: Proof
    digest: str  # of all programs: the ranks compare it
    lowered: Lowered
    program: _engine.Program

    @property
    def name(self) -> str:
        """The algorithm, with its options."""
        return self.schedule.label.partition("/")[2]


def compiled(schedule: Schedule, rank: int, rounds: Rounds = Rounds.NOT) -> Compiled:
    """Prove a schedule, or find its proof, and compile it; raise ScheduleError if it is wrong."""
    collective = collectives.find(schedule.collective)
    proof, _ = proof_of(schedule)
    lowered = lower(
        schedule, rank, int(proof.largest_message * schedule.chunks), int(proof.sent * schedule.chunks),
        rounds=rounds is not Rounds.NOT, rounds_last=rounds_last(schedule, rounds),
    )  # fmt: skip
    program = _engine.make_program(**lowered.packed(), rank=rank, size=schedule.size)
    return Compiled(schedule, collective, proof, content_digest(schedule, 1), lowered, program)


def check_blocks(made: Compiled, equal: bool) -> None:
    """Raise UsageError if an algorithm is asked for what it can do with equal blocks only."""
    if equal:
        return
    scratch = made.schedule.slots - made.collective.slots(made.schedule.chunks)[-1].stop
    if made.proof.equal_blocks_only or (not made.collective.in_place and scratch):
        raise UsageError(
            f"{made.schedule.label} passes blocks of other ranks on and so needs blocks of equal length; leave "
            "in_sizes and out_sizes out, or choose another algorithm (pairwise)"
        )
