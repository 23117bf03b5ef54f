"""What an algorithm produces: ops, steps, programs and schedules, and ways to put programs together."""

from unisono.schedule.composition import backwards, mapped
from unisono.schedule.ops import Chunks, Op, Step, combine, copy, recv, recv_reduce, send
from unisono.schedule.partition import partition
from unisono.schedule.schedule import Schedule

__all__ = [
    "Chunks", "Op", "Schedule", "Step", "backwards", "combine", "copy", "mapped", "partition", "recv",
    "recv_reduce", "send",
]  # fmt: skip
