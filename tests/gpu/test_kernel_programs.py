"""The kernel's build for the host runs the lowered programs of every algorithm: the bits are those of `play`."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import blocks_of, inputs_of, result_lengths

from gpu.host_kernel import HostKernel
from gpu.host_ranks import HostRanks
from unisono import play
from unisono.algorithms import BUILT_IN
from unisono.collectives import find
from unisono.compiler import Lengths
from unisono.gpu.plans import device_plan
from unisono.verifier import proved

SIZES = (1, 2, 3, 5, 6, 7, 8, 13)
MARGIN = 256  # bytes that no program may touch


def check(kernel, schedule, total, op, scratch_bytes):
    """Run a call on threads, each of which is a rank, and compare the results with those of the player."""
    collective, size = find(schedule.collective), schedule.size
    lengths = Lengths(blocks_of(schedule, total), blocks_of(schedule, total))
    rng = np.random.default_rng(total)
    inputs = inputs_of(schedule, lengths, lambda count: rng.standard_normal(count).astype(np.float32))
    made = proved(schedule)
    plans = [
        device_plan(
            made, rank, size, collective, lengths, 4, op, None, schedule.root, 3, scratch_bytes=scratch_bytes
        )
        for rank in range(size)
    ]  # fmt: skip
    ranks = HostRanks(kernel, size, plans[0].blocks)
    nothing = np.zeros(0, np.float32)
    for mine, plan, given, length in zip(ranks.ranks, plans, inputs, result_lengths(schedule, lengths), strict=True):
        if collective.single_array:
            source = out = np.zeros(total, np.float32) if given is None else given.copy()
        else:
            source = nothing if given is None else given.copy()
            out = np.full(length or 0, np.nan, np.float32)
        mine.set_buffers(source, out, np.full(plan.scratch_bytes + MARGIN, 0x5A, np.uint8))
    ranks.prepare([np.frombuffer(plan.program, np.uint32).copy() for plan in plans])
    ranks.run()
    for mine, plan, expected in zip(ranks.ranks, plans, play(schedule, inputs, op or "sum").outputs, strict=True):
        where = f"{schedule.label} on {size} ranks, rank {mine.rank}"
        assert mine.mailbox.fault == 0, where
        assert expected is None or mine.buffers["output"].tobytes() == expected.tobytes(), where
        assert (mine.buffers["scratch"][plan.scratch_bytes :] == 0x5A).all(), where


@pytest.mark.parametrize("size", SIZES)
def test_the_kernel_computes_the_bits_of_play(size):
    kernel = HostKernel()
    for algorithm in BUILT_IN:
        if algorithm.can_serve(size) and algorithm.collective.carries_data:
            schedule = algorithm.schedule(size, size - 1 if algorithm.collective.rooted else None)
            op = "sum" if algorithm.collective.reduces else None
            for count, scratch_bytes in ((1003, 1 << 20), (20_011, 4096 * size)):
                total = count // size * size if algorithm.collective.blocked else count
                check(kernel, schedule, total, op, scratch_bytes)


@pytest.mark.parametrize("size", [2, 5])
def test_averages_are_divided_once(size):
    kernel = HostKernel()
    for algorithm in BUILT_IN:
        if algorithm.can_serve(size) and algorithm.collective.reduces and algorithm.collective.carries_data:
            schedule = algorithm.schedule(size, 0 if algorithm.collective.rooted else None)
            check(kernel, schedule, 100 * size, "avg", 1 << 20)
