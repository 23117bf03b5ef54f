"""Predicts the time of device programs, and selects the faster one of two ways to lower a schedule.

The time of a step is that of its synchronization and of the bytes that it reads and writes, at the rank's share of
the GPU's memory bandwidth; a step begins when the steps that it waits for have ended. This is computed from the
programs alone, so all ranks get the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from unisono.gpu.layout import SCRATCH_BYTES, scratch_of
from unisono.gpu.lowering import LoweredForDevice, lower_for_device
from unisono.gpu.program import APART
from unisono.gpu.transports import Movers
from unisono.verifier import ProvedSchedule


class DeviceRates(NamedTuple):
    """What the parts of a program cost on a GPU."""

    sync_s: float  # a signal until the end of the wait for it; also the entry
    barrier_s: float  # between moves that depend on each other
    move_s: float  # what a move takes beside its bytes
    bytes_per_s: float  # read or written, shared by all ranks of the GPU
    concurrent: bool  # whether the ranks use it at the same time


# Estimates for an H200 whose ranks share it under MPS, not yet fitted to measurements.
KERNEL_RATES = DeviceRates(sync_s=2e-6, barrier_s=0.7e-6, move_s=0.3e-6, bytes_per_s=4.3e12, concurrent=True)
# Without MPS the ranks take turns on the GPU: every synchronization waits for the turns of others.
STREAM_RATES = DeviceRates(sync_s=100e-6, barrier_s=0.7e-6, move_s=0.3e-6, bytes_per_s=4.3e12, concurrent=False)


@dataclass(frozen=True)
class _StepCost:
    rank: int
    after: tuple[int, ...]  # indices of steps that end before it begins
    synchronizes: bool
    barriers: int
    moves: int
    chunks: int  # read and written


class ProgramCost:
    """The steps of all ranks of a program, in an order in which they can run."""

    def __init__(self, lowered: LoweredForDevice) -> None:
        self.size, self.chunks = lowered.schedule.size, lowered.schedule.chunks
        self.lowered = lowered
        self.steps = _in_order(lowered)

    def time(self, nbytes: int, rates: DeviceRates) -> float:
        """Return the time of a call whose vector has ``nbytes`` bytes."""
        chunk = -(-nbytes // self.chunks)
        passes = scratch_of(self.lowered, chunk, None, SCRATCH_BYTES).passes
        per_chunk = chunk / passes * self.size / rates.bytes_per_s
        ends: list[float] = []
        for step in self.steps:
            begin = max((ends[other] for other in step.after), default=rates.sync_s / passes)
            ends.append(
                begin
                + step.synchronizes * rates.sync_s
                + step.barriers * rates.barrier_s
                + step.moves * rates.move_s
                + step.chunks * per_chunk
            )
        return passes * max(ends, default=0.0)


def _in_order(lowered: LoweredForDevice) -> list[_StepCost]:
    """Return the steps in an order that respects waits; a wait is for the step with the signal of that number."""
    programs = lowered.programs
    signals = {
        (sender, sync.peer, sync.number): index
        for sender, steps in enumerate(programs)
        for index, step in enumerate(steps)
        for sync in step.signals
    }
    numbers: dict[tuple[int, int], int] = {}
    found: list[_StepCost] = []
    positions = [0] * len(programs)
    moved = True
    while moved:
        moved = False
        for rank, steps in enumerate(programs):
            while positions[rank] < len(steps):
                step = steps[positions[rank]]
                needed = [(sync.peer, signals[sync.peer, rank, sync.number]) for sync in step.waits]
                if any(each not in numbers for each in needed):
                    break
                if positions[rank]:
                    needed.append((rank, positions[rank] - 1))
                numbers[rank, positions[rank]] = len(found)
                touched = sum(len(move.sources) + len(move.destinations) for move in step.moves)
                barriers = sum(not move.flags & APART for move in step.moves)
                after = tuple(numbers[each] for each in needed)
                found.append(_StepCost(rank, after, bool(step.waits), barriers, len(step.moves), touched))
                positions[rank] += 1
                moved = True
    return found


@lru_cache(maxsize=512)
def cost_of(lowered: LoweredForDevice) -> ProgramCost:
    """Return the cost of programs, which knows the time of every call."""
    return ProgramCost(lowered)


def fastest(
    proved: ProvedSchedule, divides: bool, nbytes: int, rates: DeviceRates = KERNEL_RATES
) -> tuple[LoweredForDevice, float]:
    """Return the fastest device programs of a schedule for a vector of ``nbytes`` bytes, and their time in seconds.

    The senders put what they can, or the receivers pull it. A sender that writes its data to all others reads them
    once; but where only few ranks send, the others do nothing meanwhile, and pulling shares the work among them. Both
    may work at the same time, where the GPU runs both at the same time.
    """
    movers = Movers if rates.concurrent else (Movers.SENDERS, Movers.RECEIVERS)
    variants = [lower_for_device(proved, divides, each) for each in movers]
    times = [cost_of(each).time(nbytes, rates) for each in variants]
    best = times.index(min(times))
    return variants[best], times[best]
