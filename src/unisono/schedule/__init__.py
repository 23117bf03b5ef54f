"""The data that an algorithm produces: ops, steps, programs and schedules, and functions that combine programs."""

from unisono.schedule.composition import backwards, mapped
from unisono.schedule.frozen import FrozenSchedule, freeze
from unisono.schedule.ops import Chunks, Op, Step, combine, copy, recv, recv_reduce, send
from unisono.schedule.partition import partition
from unisono.schedule.schedule import Schedule

__all__ = [
    "Chunks", "FrozenSchedule", "Op", "Schedule", "Step", "backwards", "combine", "copy", "freeze", "mapped",
    "partition", "recv", "recv_reduce", "send",
]  # fmt: skip
