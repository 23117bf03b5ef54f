"""The plan of a call on GPUs, from a proved schedule and the lengths of the call."""

from __future__ import annotations

from dataclasses import dataclass

from unisono.codecs import Codec
from unisono.collectives import Collective
from unisono.compiler import Lengths
from unisono.errors import UsageError
from unisono.gpu import messages
from unisono.gpu.costs import KERNEL_RATES, DeviceRates, fastest
from unisono.gpu.layout import SCRATCH_BYTES, Layout, pair_bytes
from unisono.gpu.lowering import LoweredForDevice, lower_for_device
from unisono.gpu.stream_plan import pack_stream_ops, stream_ops
from unisono.verifier import ProvedSchedule

AVERAGE = "avg"


@dataclass(frozen=True)
class DevicePlan:
    """What the runtime needs to know about a call.

    ``program`` is the device program (program.py), ``stream_ops`` the same as stream operations (stream_plan.py);
    ``blocks`` is the number of thread blocks. ``bias_in[peer]`` and ``bias_out[peer]`` are added to the addresses
    that are posted to a peer. ``pair_bytes[peer]`` are the bytes that go from the lower to the higher rank of the
    pair, and back; None where all ranks know all lengths. ``uses_reduction``: the kernel must know the reduction.
    """

    program: bytes
    stream_ops: bytes
    blocks: int
    bias_in: list[int]
    bias_out: list[int]
    pair_bytes: list[tuple[int, int]] | None
    scratch_bytes: int
    uses_reduction: bool


def device_plan(
    proved: ProvedSchedule, rank: int, size: int, collective: Collective, lengths: Lengths, element_bytes: int,
    op: str | None, codec: Codec | None, root: int | None, most_blocks: int, *, scratch_bytes: int = SCRATCH_BYTES,
    rates: DeviceRates = KERNEL_RATES,
) -> DevicePlan:  # fmt: skip
    """Return the plan of a call.

    With a codec, ``proved`` includes the proof that the ranks agree although it rounds. ``most_blocks`` is the number
    of thread blocks on which the ranks agree, ``scratch_bytes`` the scratch memory of each rank, and ``rates`` are
    those of their mode.
    """
    if codec is not None and codec.stochastic:
        raise UsageError(messages.STOCHASTIC(codec=codec))
    divides = op == AVERAGE
    if lengths.known_to_all:
        lowered, _ = fastest(proved, divides, sum(lengths.input) * element_bytes, rates)
    else:  # the ranks could not decide alike
        lowered = lower_for_device(proved, divides)
    return plan_of(lowered, rank, lengths, element_bytes, codec, most_blocks, scratch_bytes)


def plan_of(
    lowered: LoweredForDevice, rank: int, lengths: Lengths, element_bytes: int, codec: Codec | None, most_blocks: int,
    scratch_bytes: int = SCRATCH_BYTES,
) -> DevicePlan:  # fmt: skip
    """Return the plan of a call with certain device programs."""
    layout = Layout(lowered, rank, lengths, element_bytes, codec, scratch_bytes)
    program = layout.program()
    bias_in, bias_out = layout.biases()
    return DevicePlan(
        program.pack(), pack_stream_ops(stream_ops(program)), layout.blocks(most_blocks), bias_in, bias_out,
        pair_bytes(lengths, rank, element_bytes), layout.scratch.bytes, lowered.uses_reduction,
    )  # fmt: skip
