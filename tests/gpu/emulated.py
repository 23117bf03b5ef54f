"""Builds calls for the emulator from schedules, inputs and lengths, and compares their results with the player's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from emulator import KERNEL, EmulatedCall, Emulator

from arrays import bits, dtype_of
from unisono import collectives, play
from unisono.codecs import Codec, decode, encode
from unisono.collectives import OWN
from unisono.compiler import Lengths
from unisono.gpu.lowering import lower_for_device
from unisono.gpu.plans import plan_of
from unisono.gpu.transports import Movers
from unisono.schedule import Schedule, partition
from unisono.verifier import ProvedSchedule, proved
from unisono.verifier.rounding import proved_with_codec

SCRATCH = 1 << 20


def blocks_of(schedule: Schedule, total: int) -> tuple[int, ...]:
    """Return the lengths of the blocks of a vector of this length, as the player cuts it."""
    blocked = collectives.find(schedule.collective).blocked
    return tuple(piece.stop - piece.start for piece in partition(total, schedule.size if blocked else 1))


def inputs_of(schedule: Schedule, lengths: Lengths, make: Callable[[int], np.ndarray]) -> list[np.ndarray | None]:
    """Return the array that each rank passes; ``make(length)`` gives the numbers."""
    collective = collectives.find(schedule.collective)
    return [
        None if length is None else make(length)
        for length in _array_lengths(schedule, lengths.input, collective.held_before, collective.blocked)
    ]


def result_lengths(schedule: Schedule, lengths: Lengths) -> list[int | None]:
    """Return the length of the result of each rank, None where it has none."""
    collective = collectives.find(schedule.collective)
    return _array_lengths(schedule, lengths.output, collective.held_after, collective.blocked)


def _array_lengths(schedule: Schedule, blocks: tuple[int, ...], held: Callable, blocked: bool) -> list[int | None]:
    found: list[int | None] = []
    for rank in range(schedule.size):
        slots = held(rank, schedule.size, schedule.size, schedule.root or 0)
        own = blocked and len(slots) == 1
        found.append((blocks[rank] if own else sum(blocks)) if slots else None)
    return found


def emulated_call(
    made: ProvedSchedule, lengths: Lengths, inputs: list[np.ndarray | None], *, op: str | None = None,
    codec: Codec | None = None, in_place: bool = False, blocks: int = 2, scratch: int = SCRATCH,
    movers: Movers = Movers.SENDERS, of_rank: Callable[[int], Lengths] | None = None,
) -> EmulatedCall:  # fmt: skip
    """Return a call of all ranks; ``of_rank`` gives the lengths that a rank knows, by default all."""
    schedule = made.schedule
    collective = collectives.find(schedule.collective)
    dtype = next((array.dtype for array in inputs if array is not None), np.dtype(np.float32))
    lowered = lower_for_device(made, op == "avg", movers)
    plans = []
    for rank in range(schedule.size):
        known = lengths if of_rank is None else of_rank(rank)
        plan = plan_of(lowered, rank, known, dtype.itemsize, codec, blocks, scratch)
        plans.append(replace(plan, blocks=blocks))  # tiles have few bytes here, so that there are many of them
    offsets = None
    if in_place and OWN in (collective.before.root, collective.before.others):
        offsets = [sum(lengths.input[:rank]) for rank in range(schedule.size)]
    return EmulatedCall(
        plans, inputs, result_lengths(schedule, lengths), dtype, "sum" if op == "avg" else op, codec,
        collective.single_array, offsets,
    )  # fmt: skip


def calls_and_results(
    schedule: Schedule, total: int, *, op: str | None = None, codec: Codec | None = None, seed: int = 0,
    calls: int = 2, dtype: str = "float32", **options,
) -> tuple[list[EmulatedCall], list[list[np.ndarray | None]]]:  # fmt: skip
    """Return calls on random numbers, and the player's results; the options are those of ``emulated_call``."""
    if op is None and collectives.find(schedule.collective).reduces:
        op = "sum"
    made = proved(schedule)
    if codec is not None:
        made = proved_with_codec(made, False, warns=False)
    rng = np.random.default_rng(seed)
    lengths = Lengths(blocks_of(schedule, total), blocks_of(schedule, total))
    emulated, wanted = [], []
    for _ in range(calls):
        inputs = inputs_of(schedule, lengths, lambda n: rng.standard_normal(n).astype(dtype_of(dtype)))
        emulated.append(emulated_call(made, lengths, inputs, op=op, codec=codec, **options))
        rounding = {} if codec is None else rounding_of(made, codec)
        wanted.append(play(schedule, inputs, op or "sum", **rounding).outputs)
    return emulated, wanted


def rounding_of(made: ProvedSchedule, codec: Codec) -> dict:
    """Return how the player rounds."""
    assert made.rounding is not None

    def round_sent(values: np.ndarray) -> np.ndarray:
        return decode(encode(values, codec), codec, len(values))

    return {"round_sent": round_sent, "needs_final_rounding": made.rounding.last}


def is_right(emulator: Emulator, wanted: list[list[np.ndarray | None]]) -> bool:
    """Run the calls; return whether every rank has the expected bits."""
    return all(
        (one is None) == (other is None) and (one is None or bits(one) == bits(other))
        for outputs, expected in zip(emulator.run(), wanted, strict=True)
        for one, other in zip(outputs, expected, strict=True)
    )


def check_against_player(
    schedule: Schedule, total: int, *, mode: str = KERNEL, seed: int = 0, tile: int = 16, **options
) -> None:
    """Run calls back to back, and assert that every rank has the player's bits."""
    emulated, wanted = calls_and_results(schedule, total, seed=seed, **options)
    what = f"{schedule.label} on {schedule.size} ranks, root {schedule.root}, {total} elements, {mode}, {options}"
    assert is_right(Emulator(emulated, seed, mode, tile), wanted), what
