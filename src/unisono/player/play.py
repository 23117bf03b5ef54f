"""Runs a schedule in this process on real numbers: the reference for the engine, and the data of the drawings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unisono import collectives
from unisono.algorithms.scheduling import Program, schedule_of
from unisono.collectives import ALL, Collective
from unisono.errors import GoalError, ScheduleError, UsageError
from unisono.player import messages
from unisono.player.memory import Cell, NumberMemory
from unisono.player.reduction import Array, combining, combining_wide, finished
from unisono.schedule import Schedule, partition
from unisono.schedule.network import run

Row = list[Cell | None]
History = list[list[tuple[int, Row]]]  # of each rank: level and row after each of its steps


@dataclass(frozen=True)
class Frame:
    """The slots of every rank once all steps up to this level are done: ``rows[rank][slot]``."""

    level: int
    rows: list[Row]
    steps_done: list[int]  # of each rank


@dataclass(frozen=True)
class Playback:
    """The outputs and, if recorded, all intermediate states.

    ``outputs`` holds the output of each rank; None where the collective gives it nothing. ``levels`` is the length of
    the longest path of steps and messages. ``history`` holds the states, which ``frames`` yields.
    """

    outputs: list[Array | None]
    levels: int
    history: History = field(repr=False)

    def frames(self) -> Iterator[Frame]:
        """Yield the state before the first step (level 0) and after each level.

        UsageError is raised unless ``play`` was called with ``record=True``.
        """
        if not self.history:
            raise UsageError(messages.NOTHING_RECORDED())
        positions = [0] * len(self.history)
        for level in range(self.levels + 1):
            for rank, states in enumerate(self.history):
                while positions[rank] + 1 < len(states) and states[positions[rank] + 1][0] <= level:
                    positions[rank] += 1
            rows = [states[at][1] for states, at in zip(self.history, positions, strict=True)]
            yield Frame(level, rows, list(positions))


def play(
    program: Program, inputs: Sequence[Any] | None = None, op: str = "sum", *, record: bool = False,
    round_sent: Callable[[Array], Array] | None = None, needs_final_rounding: bool = False, size: int | None = None,
    root: int | None = None, **options: Any,
) -> Playback:  # fmt: skip
    """Run ``program`` step by step on the inputs of all ranks, in this process, and return the outputs.

    ``program`` is a schedule, an algorithm, or the name of one (``"ring"``, ``"my_algo.py:zigzag"``). An algorithm
    runs on as many ranks as there are inputs; a barrier, which has none, needs a ``size``. ``root`` and ``options``
    are those of the algorithm.

    ``inputs`` is a list: ``inputs[rank]`` is the array that the rank passes to the collective; None for ranks that
    pass nothing (all but the root of a broadcast or scatter). A barrier takes no inputs. ``op`` is "sum" (default),
    "prod", "max", "min", "avg", "band", "bor" or "bxor". ``record`` keeps all intermediate states for
    ``Playback.frames()``. ``round_sent`` rounds a chunk that is sent, as a codec does (default: none); with
    ``needs_final_rounding`` every rank rounds its result once more (verifier/rounding.py explains where that is
    needed).

    ScheduleError is raised if the program is wrong, and UsageError if the arguments cannot work. For example::

        outputs = unisono.play("ring", [[1, 2, 3], [4, 5, 6], [7, 8, 9]]).outputs
    """
    if size is None and inputs is not None and not isinstance(program, Schedule):
        size = len(inputs)
    schedule = schedule_of(program, "play", size, root, options)
    collective = collectives.find(schedule.collective)
    memory = _memory(schedule, collective, inputs, op, round_sent)
    history: History = []
    traffic = run(schedule, memory, end_step=_recorder(memory, history) if record else None, read_sent=memory.send)
    last = round_sent if needs_final_rounding and round_sent is not None else None
    return Playback(_outputs(schedule, collective, memory.rows, op, last), traffic.levels, history)


def play_until_error(
    schedule: Schedule, inputs: Sequence[Any] | None = None, op: str = "sum"
) -> tuple[Playback, ScheduleError | None]:
    """Run and record a schedule as far as it goes; return the error that stopped it, if there was one.

    Without an error the playback is that of ``play(..., record=True)``; with one it has no outputs.
    """
    collective = collectives.find(schedule.collective)
    memory = _memory(schedule, collective, inputs, op, None)
    history: History = []
    try:
        traffic = run(schedule, memory, end_step=_recorder(memory, history), read_sent=memory.send)
        outputs = _outputs(schedule, collective, memory.rows, op, None)
    except ScheduleError as error:
        return Playback([], max(states[-1][0] for states in history), history), error
    return Playback(outputs, traffic.levels, history), None


def _memory(
    schedule: Schedule, collective: Collective, inputs: Sequence[Any] | None, op: str,
    round_sent: Callable[[Array], Array] | None,
) -> NumberMemory:  # fmt: skip
    """Return the slots of all ranks before the first step."""
    collective.check_layout(schedule)
    arrays, dtype = _checked_inputs(schedule, collective, inputs)
    rows = [_first_row(schedule, collective, rank, arrays) for rank in range(schedule.size)]
    means = op if collective.carries_data else "max"
    return NumberMemory(
        rows, combining(means, dtype), hearing=not collective.carries_data, add_wide=combining_wide(means, dtype),
        round_sent=round_sent,
    )  # fmt: skip


def _recorder(memory: NumberMemory, history: History) -> Callable[[int, int, int], None]:
    """Return a function that appends the row of a rank to the history, after the first rows."""
    history += [[(0, list(row))] for row in memory.rows]

    def record(rank: int, index: int, level: int) -> None:
        history[rank].append((level, list(memory.rows[rank])))

    return record


def _outputs(
    schedule: Schedule, collective: Collective, rows: list[Row], op: str, last: Callable[[Array], Array] | None
) -> list[Array | None]:
    """Return the result of every rank; ``last`` is applied to each chunk of it."""
    outputs: list[Array | None] = []
    for rank, row in enumerate(rows):
        slots = collective.held_after(rank, schedule.size, schedule.chunks, schedule.root or 0)
        cells = [cell for slot in slots if (cell := row[slot]) is not None]
        if len(cells) != len(slots):
            raise GoalError(
                messages.RESULT_MISSING(), algorithm=schedule.label, size=schedule.size, rank=rank,
                chunk=next(slot for slot in slots if row[slot] is None), hint=messages.PROVE_IT(),
            )  # fmt: skip
        values = [cell.values if last is None else last(cell.values) for cell in cells]
        total = np.concatenate(values) if cells else None
        outputs.append(
            finished(op, total, schedule.size)
            if total is not None and collective.reduces and collective.carries_data
            else total
        )
    return outputs


def _checked_inputs(
    schedule: Schedule, collective: Collective, inputs: Sequence[Any] | None
) -> tuple[list[Array | None], np.dtype[Any]]:
    size, root = schedule.size, schedule.root or 0
    if not collective.carries_data:
        # A barrier moves no data; its pages show which ranks are known to have arrived.
        return [np.eye(size, dtype=np.int64)[rank] for rank in range(size)], np.dtype(np.int64)
    given_for = 0 if inputs is None else len(inputs)
    if inputs is None or given_for != size:
        raise UsageError(messages.INPUT_COUNT(algorithm=schedule.label, count=given_for, size=size))
    arrays: list[Array | None] = []
    for rank, given in enumerate(inputs):
        if not collective.held_before(rank, size, schedule.chunks, root):
            arrays.append(None)
            continue
        if given is None:
            raise UsageError(messages.NO_INPUT(algorithm=schedule.label, rank=rank))
        array = np.asarray(given)
        if array.ndim != 1:
            raise UsageError(messages.BAD_SHAPE(algorithm=schedule.label, rank=rank, shape=array.shape))
        arrays.append(array)
    present = [(rank, array) for rank, array in enumerate(arrays) if array is not None]
    first_rank, first = present[0]
    for rank, array in present:
        if array.dtype != first.dtype:
            raise UsageError(
                messages.OTHER_DTYPE(
                    algorithm=schedule.label, rank=rank, dtype=array.dtype, first_rank=first_rank,
                    first_dtype=first.dtype,
                )
            )  # fmt: skip
        if collective.before.root is ALL and len(array) != len(first):
            raise UsageError(
                messages.OTHER_LENGTH(
                    algorithm=schedule.label, rank=rank, length=len(array), first_rank=first_rank,
                    first_length=len(first),
                )
            )  # fmt: skip
    return arrays, first.dtype


def _first_row(schedule: Schedule, collective: Collective, rank: int, arrays: list[Array | None]) -> Row:
    """Cut the rank's input into chunks and put them into its slots."""
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
