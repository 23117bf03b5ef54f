"""The plans of a communicator's calls on CUDA arrays: proved, lowered to device programs, and kept."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from unisono import _engine
from unisono.algorithms.declaration import Algorithm
from unisono.bootstrap.membership import Link
from unisono.comm.arrays import ELEMENT_BYTES
from unisono.comm.call_request import CallRequest, GivenSchedule
from unisono.comm.call_schedule import label_of, named_algorithm, result_length, schedule_of
from unisono.comm.codec_agreement import RoundingMode, agrees, rounding_mode_of, with_codec
from unisono.comm.plan_cache import MOST_PLANS, MOST_PROGRAMS, LeastRecentlyUsed, ProgramKey
from unisono.comm.programs import check_blocks
from unisono.gpu.plans import device_plan
from unisono.gpu.selection import choose_on_gpu
from unisono.verifier import ProvedSchedule, proved

if TYPE_CHECKING:
    from unisono.comm.dispatch import Dispatcher
    from unisono.gpu.connection import GpuSide

DEVICE = "cuda"  # in the texts of calls


class GpuPlans:
    """The plans of one communicator, by request."""

    def __init__(self, link: Link, side: GpuSide) -> None:
        self._link = link
        self._side = side
        self._plans: LeastRecentlyUsed[CallRequest, _engine.GpuPlan] = LeastRecentlyUsed(MOST_PLANS)
        self._programs: LeastRecentlyUsed[ProgramKey, ProvedSchedule] = LeastRecentlyUsed(MOST_PROGRAMS)

    def plan(self, request: CallRequest) -> _engine.GpuPlan:
        """Return the plan of a call, made once for all equal calls; addresses do not matter to it."""
        request = request.as_key()
        plan = self._plans.get(request)
        if plan is None:
            plan = self._make(request)
            self._plans.add(request, plan)
        return plan
