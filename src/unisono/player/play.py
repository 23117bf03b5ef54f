"""Run a schedule in this process on real numbers: the reference for the engine, and the source of the pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unisono import collectives
from unisono.collectives import ALL, Collective
from unisono.errors import GoalError, UsageError
from unisono.player.memory import Cell, NumberMemory
from unisono.player.reduction import Array, combining, combining_wide, finished
from unisono.schedule import Schedule, partition
from unisono.schedule.network import run

Row = list[Cell | None]


@dataclass(frozen=True)
class Frame:
    """What every rank's slots hold once all steps up to this level are done: ``rows[rank][slot]``."""

    level: int
    rows: list[Row]
    steps_done: list[int]  # of each rank


@dataclass(frozen=True)
class Playback:
    """What came out, and, if it was recorded, every state on the way."""

    outputs: list[Array | None]  # of each rank; None where the collective gives it nothing
    levels: int
    history: list[list[tuple[int, Row]]] = field(repr=False)  # of each rank: level and row after each of its steps

    def frames(self) -> Iterator[Frame]:
        """Yield the state before the first step (level 0) and after each level."""
        if not self.history:
            raise UsageError("nothing was recorded; call play(..., record=True)")
        positions = [0] * len(self.history)
        for level in range(self.levels + 1):
            for rank, states in enumerate(self.history):
                while positions[rank] + 1 < len(states) and states[positions[rank] + 1][0] <= level:
                    positions[rank] += 1
            rows = [states[at][1] for states, at in zip(self.history, positions, strict=True)]
            yield Frame(level, rows, list(positions))


def play(
    schedule: Schedule, inputs: Sequence[Any] | None = None, op: str = "sum", *, record: bool = False,
    round_sent: Callable[[Array], Array] | None = None, needs_final_rounding: bool = False,
) -> Playback:  # fmt: skip
    """Run the schedule step by step on the inputs of all ranks.

    ``inputs[rank]`` is what that rank would pass to the collective; None for ranks that pass nothing (all but the
    root of a broadcast or scatter). A barrier takes no inputs. ``op`` is one of sum, prod, max, min, avg, band,
    bor, bxor. ``round_sent`` returns what a codec makes of a chunk that is sent; ``needs_final_rounding`` lets
    every rank do that to its result once more (verifier/rounding.py says where that is needed).
    """
    collective = collectives.find(schedule.collective)
    collective.check_layout(schedule)
    arrays, dtype = _checked_inputs(schedule, collective, inputs)
    rows = [_first_row(schedule, collective, rank, arrays) for rank in range(schedule.size)]
    means = op if collective.carries_data else "max"
    memory = NumberMemory(
        rows, combining(means, dtype), hearing=not collective.carries_data, add_wide=combining_wide(means, dtype),
        round_sent=round_sent,
    )  # fmt: skip
    history: list[list[tuple[int, Row]]] = [[(0, list(row))] for row in rows] if record else []

    def keep(rank: int, index: int, level: int) -> None:
        history[rank].append((level, list(rows[rank])))

    traffic = run(schedule, memory, end_step=keep if record else None, read_sent=memory.send)
    outputs: list[Array | None] = []
    for rank, row in enumerate(rows):
        slots = collective.held_after(rank, schedule.size, schedule.chunks, schedule.root or 0)
        cells = [cell for slot in slots if (cell := row[slot]) is not None]
        if len(cells) != len(slots):
            raise GoalError(
                "a chunk of the result is missing", algorithm=schedule.label, size=schedule.size, rank=rank,
                chunk=next(slot for slot in slots if row[slot] is None), hint="prove the schedule: that says more",
            )  # fmt: skip
        last = round_sent if needs_final_rounding and round_sent is not None else lambda values: values
        total = np.concatenate([last(cell.values) for cell in cells]) if cells else None
        outputs.append(
            finished(op, total, schedule.size)
            if total is not None and collective.reduces and collective.carries_data
            else total
        )
    return Playback(outputs, traffic.levels, history)


def _checked_inputs(
    schedule: Schedule, collective: Collective, inputs: Sequence[Any] | None
) -> tuple[list[Array | None], np.dtype[Any]]:
    size, root = schedule.size, schedule.root or 0
    if not collective.carries_data:
        # A barrier moves no data; what can be shown is who has been heard of.
        return [np.eye(size, dtype=np.int64)[rank] for rank in range(size)], np.dtype(np.int64)
    given_for = 0 if inputs is None else len(inputs)
    if inputs is None or given_for != size:
        raise UsageError(f"{schedule.label}: inputs for {given_for} ranks; expected one for each of {size}")
    arrays: list[Array | None] = []
    for rank, given in enumerate(inputs):
        if not collective.held_before(rank, size, schedule.chunks, root):
            arrays.append(None)
            continue
        if given is None:
            raise UsageError(f"{schedule.label}: rank {rank} has no input; expected an array")
        array = np.asarray(given)
        if array.ndim != 1:
            raise UsageError(
                f"{schedule.label}: the input of rank {rank} has shape {array.shape}; expected one dimension"
            )
        arrays.append(array)
    present = [(rank, array) for rank, array in enumerate(arrays) if array is not None]
    first_rank, first = present[0]
    for rank, array in present:
        if array.dtype != first.dtype:
            raise UsageError(
                f"{schedule.label}: rank {rank} has dtype {array.dtype}, rank {first_rank} has {first.dtype}; "
                "expected the same on every rank"
            )
        if collective.before.root is ALL and len(array) != len(first):
            raise UsageError(
                f"{schedule.label}: rank {rank} has {len(array)} elements, rank {first_rank} has {len(first)}; "
                "expected the same on every rank"
            )
    return arrays, first.dtype


def _first_row(schedule: Schedule, collective: Collective, rank: int, arrays: list[Array | None]) -> Row:
    """Cut the rank's input into chunks and lay them into its slots."""
    row: Row = [None] * schedule.slots
    array = arrays[rank]
    if array is not None:
        held = collective.held_before(rank, schedule.size, schedule.chunks, schedule.root or 0)
        blocks = schedule.size if collective.blocked and len(held) == schedule.chunks else 1
        pieces = [
            array[block][piece]
            for block in partition(len(array), blocks)
            for piece in partition(block.stop - block.start, len(held) // blocks)
        ]
        for slot, piece in zip(held, pieces, strict=True):
            row[slot] = Cell(piece, 1 << rank)
    return row
