"""Programs: algorithms that were proved and compiled for one rank."""

from __future__ import annotations

from dataclasses import dataclass

from unisono import _engine, collectives
from unisono.collectives import Collective
from unisono.comm import messages
from unisono.comm.codec_agreement import RoundingMode, with_codec
from unisono.compiler import Hosts, Lowered, lower
from unisono.errors import UsageError
from unisono.schedule import FrozenSchedule, Schedule
from unisono.verifier import Proof, proved

# With more ranks, the steps of the other ranks are not kept once a program is compiled: they take megabytes.
MOST_RANKS_KEPT = 64
FOR_UNEQUAL = "naive"  # the algorithm of calls in which a rank does not know all lengths


@dataclass(frozen=True)
class Compiled:
    """A proved schedule and this rank's part of it, ready to be executed."""

    schedule: FrozenSchedule  # the steps that were proved; of this rank alone where there are many
    collective: Collective
    proof: Proof
    digest: str  # of all programs: the ranks compare it
    lowered: Lowered
    program: _engine.Program

    @property
    def name(self) -> str:
        """The algorithm, with its options."""
        return self.schedule.label.partition("/")[2]


def compiled(
    schedule: Schedule, rank: int, rounding: RoundingMode = RoundingMode.NONE, hosts: Hosts | None = None
) -> Compiled:
    """Run the programs once, prove them or find their proof, and compile this rank's.

    ``hosts`` are the ranks of each host; None stands for one host. Raise ScheduleError if the programs are wrong.
    """
    made = with_codec(proved(schedule, warns=rank == 0), rounding)
    lowered = lower(made, rank, hosts)
    program = _engine.make_program(**lowered.packed(), rank=rank, size=made.schedule.size)
    kept = made.schedule if made.schedule.size <= MOST_RANKS_KEPT else made.schedule.alone(rank)
    return Compiled(kept, collectives.find(kept.collective), made.proof, made.digest, lowered, program)


def check_blocks(schedule: FrozenSchedule, proof: Proof, equal: bool) -> None:
    """Raise UsageError if blocks are unequal and the algorithm can handle equal blocks only."""
    if equal:
        return
    collective = collectives.find(schedule.collective)
    scratch = schedule.slots - collective.slots(schedule.chunks)[-1].stop
    if proof.equal_blocks_only or (not collective.in_place and scratch):
        raise UsageError(messages.NEEDS_EQUAL_BLOCKS(algorithm=schedule.label))
