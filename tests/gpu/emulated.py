"""Builds calls for the emulator from schedules, inputs and lengths, and compares their results with the player's."""

from __future__ import annotations

import numpy as np
from emulator import KERNEL, EmulatedCall, Emulator

from arrays import bits
from unisono import collectives, play
from unisono.codecs import Codec
from unisono.collectives import OWN
from unisono.compiler import Lengths
from unisono.gpu.plans import device_plan
from unisono.schedule import partition
from unisono.verifier import ProvedSchedule, proved
from unisono.verifier.rounding import proved_with_codec

SCRATCH = 1 << 20


def blocks_of(schedule, total: int) -> tuple[int, ...]:
    """Return the lengths of the blocks of a vector of this length, as the player cuts it."""
    blocked = collectives.find(schedule.collective).blocked
    return tuple(len(range(*piece.indices(total))) for piece in partition(total, schedule.size if blocked else 1))


def inputs_of(schedule, lengths: Lengths, make) -> list[np.ndarray | None]:
    """Return the array that each rank passes; ``make(length)`` gives the numbers."""
    collective = collectives.find(schedule.collective)
    found = []
    for rank in range(schedule.size):
        held = collective.held_before(rank, schedule.size, schedule.size, schedule.root or 0)
        own = collective.blocked and len(held) == 1 and schedule.size > 1
        found.append(make(lengths.input[rank] if own else sum(lengths.input)) if held else None)
    return found


def result_lengths(schedule, lengths: Lengths) -> list[int | None]:
    """Return the length of the result of each rank."""
    collective = collectives.find(schedule.collective)
    found: list[int | None] = []
    for rank in range(schedule.size):
        held = collective.held_after(rank, schedule.size, schedule.size, schedule.root or 0)
        own = collective.blocked and len(held) == 1 and schedule.size > 1
        found.append((lengths.output[rank] if own else sum(lengths.output)) if held else None)
    return found


def emulated_call(
    made: ProvedSchedule, lengths: Lengths, inputs, *, op: str | None = None, codec: Codec | None = None,
    in_place: bool = False, blocks: int = 2, scratch: int = SCRATCH, of_rank=lambda rank, lengths: lengths,
) -> EmulatedCall:  # fmt: skip
    """Return a call of all ranks. ``of_rank`` gives the lengths that a rank knows."""
    schedule = made.schedule
    collective = collectives.find(schedule.collective)
    dtype = next((array.dtype for array in inputs if array is not None), np.dtype(np.float32))
    plans = [
        device_plan(
            made, rank, schedule.size, collective, of_rank(rank, lengths), dtype.itemsize, op, codec, schedule.root,
            blocks, scratch_bytes=scratch,
        )
        for rank in range(schedule.size)
    ]  # fmt: skip
    offsets = None
    if in_place and OWN in (collective.before.root, collective.before.others):
        offsets = [sum(lengths.input[:rank]) for rank in range(schedule.size)]
    # Thread blocks get tiles of few bytes here, so that there are many of them.
    plans = [_with_blocks(plan, blocks) for plan in plans]
    return EmulatedCall(
        plans, inputs, result_lengths(schedule, lengths), dtype, "sum" if op == "avg" else op, codec,
        collective.single_array, offsets,
    )  # fmt: skip


def _with_blocks(plan, blocks: int):
    from dataclasses import replace

    return replace(plan, blocks=blocks)


def check_against_player(
    schedule, total: int, *, op: str | None = None, codec: Codec | None = None, in_place: bool = False,
    blocks: int = 2, scratch: int = SCRATCH, mode: str = KERNEL, seed: int = 0, tile: int = 16, calls: int = 2,
    dtype: str = "float32",
) -> None:  # fmt: skip
    """Run calls back to back, and assert that every rank has the player's bits."""
    made = proved(schedule)
    rounding = None
    if codec is not None:
        made = proved_with_codec(made, False, warns=False)
        rounding = made.rounding
    rng = np.random.default_rng(seed)
    lengths = Lengths(blocks_of(schedule, total), blocks_of(schedule, total))
    emulated, wanted = [], []
    for _ in range(calls):
        inputs = inputs_of(schedule, lengths, lambda n: rng.standard_normal(n).astype(dtype))
        emulated.append(
            emulated_call(
                made, lengths, inputs, op=op, codec=codec, in_place=in_place, blocks=blocks, scratch=scratch
            )
        )
        if codec is None:
            wanted.append(play(schedule, inputs, op or "sum").outputs)
        else:
            wanted.append(
                play(
                    schedule, inputs, op or "sum", round_sent=lambda values: _round(values, codec),
                    needs_final_rounding=rounding.last,
                ).outputs
            )  # fmt: skip
    found = Emulator(emulated, seed, mode, tile).run()
    for number, (outputs, expected) in enumerate(zip(found, wanted, strict=True)):
        for rank, (one, other) in enumerate(zip(outputs, expected, strict=True)):
            where = f"{schedule.label} on {schedule.size} ranks, call {number}, rank {rank}"
            assert (one is None) == (other is None), where
            assert one is None or bits(one) == bits(other), where


def _round(values: np.ndarray, codec: Codec) -> np.ndarray:
    from unisono.codecs import decode, encode

    return decode(encode(values, codec), codec, len(values))
