"""The plans of a communicator's calls on CUDA arrays: proved, lowered to device programs, and kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from unisono import _engine
from unisono.algorithms.declaration import Algorithm
from unisono.bootstrap.membership import Link
from unisono.comm.arrays import ELEMENT_BYTES
from unisono.comm.call_request import CallRequest
from unisono.comm.call_schedule import label_of, named_algorithm, result_length, schedule_of
from unisono.comm.codec_agreement import RoundingMode, agrees, rounding_mode_of, with_codec
from unisono.comm.plan_cache import MOST_PLANS, MOST_PROGRAMS, LeastRecentlyUsed, ProgramKey
from unisono.comm.programs import FOR_UNEQUAL, check_blocks
from unisono.gpu.connection import GpuSide
from unisono.gpu.costs import KERNEL_RATES, STREAM_RATES
from unisono.gpu.plans import DevicePlan, device_plan
from unisono.gpu.selection import choose_for_device
from unisono.verifier import ProvedSchedule, proved

DEVICE = "cuda"  # in the texts of calls
FINGERPRINT_BYTES = 6
# A call that only moves data runs the kernel of another type of the same length: fewer kernels are compiled.
TYPE_TO_MOVE = {1: "uint8", 2: "int16", 4: "int32", 8: "int64", 16: "complex128"}  # by bytes


class GpuPlans:
    """The plans of one communicator, by request."""

    def __init__(self, link: Link, side: GpuSide, forget: Callable[[_engine.GpuPlan], None]) -> None:
        self._rank, self._size = link.rank, link.size
        self._side = side
        self._rates = KERNEL_RATES if side.agreement.mode == "kernel" else STREAM_RATES
        self._forget = forget  # tells the fast path that a plan was dropped
        self._plans: LeastRecentlyUsed[CallRequest, _engine.GpuPlan] = LeastRecentlyUsed(MOST_PLANS)
        self._proved: LeastRecentlyUsed[ProgramKey, ProvedSchedule] = LeastRecentlyUsed(MOST_PROGRAMS)

    def plan(self, request: CallRequest) -> _engine.GpuPlan:
        """Return the plan of a call, made once for all equal calls; addresses do not matter to it.

        The codec of the request is a Codec. Every rank makes the same plans.
        """
        request = request.as_key()
        plan = self._plans.get(request)
        if plan is None:
            plan = self._make(request)
            dropped = self._plans.add(request, plan)
            if dropped is not None:
                self._forget(dropped)
        return plan

    def _make(self, request: CallRequest) -> _engine.GpuPlan:
        rank, size, side = self._rank, self._size, self._side
        collective, lengths, codec, op = request.collective, request.lengths, request.codec, request.op
        element = ELEMENT_BYTES[request.dtype]
        made = self._program(request)
        schedule = made.schedule
        check_blocks(schedule, made.proof, lengths.equal_blocks)
        device = device_plan(
            made, rank, size, collective, lengths, element, op, codec, request.root, side.agreement.blocks,
            rates=self._rates,
        )  # fmt: skip
        text = request.label or label_of(request, schedule.label.partition("/")[2], DEVICE)
        known_to_all = (lengths.input, lengths.output) if lengths.known_to_all else None
        fingerprint = _fingerprint(text, made.digest, known_to_all, device.blocks, codec)
        wire = "none" if codec is None else codec.name
        reduction = "none" if op is None or not device.uses_reduction else "sum" if op == "avg" else op
        dtype = TYPE_TO_MOVE[element] if (reduction, wire) == ("none", "none") and op != "avg" else request.dtype
        return side.endpoint.make_plan(
            kernel=side.kernel(dtype, reduction, wire), program=device.program, stream_ops=device.stream_ops,
            blocks=device.blocks, fingerprint=fingerprint, fingerprints=_with_lengths(fingerprint, device, size),
            bias_in=device.bias_in, bias_out=device.bias_out,
            input_bytes=_input_length(request, rank, size) * element,
            output_bytes=result_length(request, rank, size) * element, text=text,
            largest_bytes=_largest_length(request, size) * element,
        )  # fmt: skip

    def _program(self, request: CallRequest) -> ProvedSchedule:
        """Return the proved steps of all ranks, of the algorithm that the call names, or of the best one known."""
        collective, lengths, root, size = request.collective, request.lengths, request.root, self._size
        rounding, algorithm = rounding_mode_of(request.codec), request.algorithm
        if algorithm is None and not lengths.known_to_all:
            algorithm = FOR_UNEQUAL  # every rank must choose the same, and they know different lengths
        if algorithm is None:
            algorithm = self._chosen(request, rounding)
        found, options = named_algorithm(collective, algorithm, None)
        key = (collective, found, *options.items(), root, rounding)
        made = self._proved.get(key)
        if made is None:
            schedule = schedule_of(collective, found, size, root, options)
            made = with_codec(proved(schedule, warns=self._rank == 0), rounding)
            self._proved.add(key, made)
        return made

    def _chosen(self, request: CallRequest, rounding: RoundingMode) -> Algorithm:
        """Return the best algorithm known with which all ranks get the same bits."""
        nbytes = sum(request.lengths.input) * ELEMENT_BYTES[request.dtype]
        return choose_for_device(
            request.collective, self._size, request.root, nbytes, self._rates,
            lambda schedule: agrees(schedule, rounding),
        )  # fmt: skip


def _fingerprint(*agreed: object) -> int:
    """Return a number that differs, almost certainly, between ranks that do not agree."""
    digest = hashlib.blake2b(repr(agreed).encode(), digest_size=FINGERPRINT_BYTES).digest()
    return int.from_bytes(digest, "little")


def _with_lengths(fingerprint: int, device: DevicePlan, size: int) -> list[int]:
    """Return the fingerprint for each peer, which includes the lengths that only the pair knows."""
    if device.pair_bytes is None:
        return [fingerprint] * size
    return [fingerprint ^ _fingerprint(pair) for pair in device.pair_bytes]


def _input_length(request: CallRequest, rank: int, size: int) -> int:
    """Return the number of elements of this rank's input."""
    held = len(request.collective.held_before(rank, size, size, request.root or 0))
    if request.collective.blocked and held < size:
        return request.lengths.input[rank] if held else 0
    return sum(request.lengths.input) if held else 0


def _largest_length(request: CallRequest, size: int) -> int:
    """Return the elements of input and output of the rank that has most of them; 0 where not all ranks know that."""
    if not request.lengths.known_to_all:
        return 0
    return max(_input_length(request, rank, size) + result_length(request, rank, size) for rank in range(size))
