"""The part of ``unisono demo`` on real ranks: runs all eight collectives and compares each result with ``play``."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from unisono import collectives
from unisono.cli.output import table
from unisono.collectives import Collective
from unisono.comm.selection import choose
from unisono.launch.spawn import spawn
from unisono.player.play import play
from unisono.player.reduction import Array

RANKS = 4
ELEMENTS = 250_000  # of the vector: 1 MB of float32, in blocks that no power of two divides
CALLS = 20
SHOWN = [collective for collective in collectives.COLLECTIVES if collective.carries_data]


class Row(NamedTuple):
    """The result of one collective."""

    collective: Collective
    algorithm: str
    time_s: float
    wrong: int  # elements

    @property
    def algbw(self) -> float:
        """Bytes of the vector per second, in GB/s."""
        return ELEMENTS * 4 / self.time_s / 1e9

    @property
    def busbw(self) -> float:
        """Bytes per second that the busiest rank must move, in GB/s."""
        return self.algbw * float(self.collective.bus_factor(RANKS))


def run_all() -> list[Row]:
    """Run every collective on real ranks, compare the results with play, and measure the time."""
    answers = spawn(_on_each_rank, RANKS)
    rows = []
    for index, collective in enumerate(SHOWN):
        algorithm = choose(collective, RANKS, ELEMENTS * 4, {}).algorithm
        root = 0 if collective.rooted else None
        playback = play(algorithm.schedule(RANKS, root), [_input(collective, rank) for rank in range(RANKS)])
        wrong, times = 0, []
        for rank, expected in enumerate(playback.outputs):
            found, time_s = answers[rank][index]
            times.append(time_s)
            if expected is not None:
                wrong += int(np.count_nonzero(found != expected))
        rows.append(Row(collective, algorithm.name, max(times), wrong))
    return rows


def table_of(rows: list[Row]) -> Any:
    """Return the results as a table with the columns of nccl-tests."""
    made = table("   collective", "algorithm", ">bytes", ">time µs", ">algbw GB/s", ">busbw GB/s", ">wrong")
    for row in rows:
        made.add_row(
            f"   {row.collective}", row.algorithm, str(ELEMENTS * 4), f"{row.time_s * 1e6:.0f}", f"{row.algbw:.2f}",
            f"{row.busbw:.2f}", str(row.wrong),
        )  # fmt: skip
    return made


def _input(collective: Collective, rank: int) -> Array | None:
    held = collective.held_before(rank, RANKS, RANKS)
    if not held:
        return None
    # Small integers, so that every sum is exact in any order.
    return ((np.arange(ELEMENTS // RANKS * len(held)) * 7 + rank) % 61).astype(np.float32)


def _on_each_rank(comm: Any) -> list[tuple[Array | None, float]]:
    return [_call(comm, collective) for collective in SHOWN]


def _call(comm: Any, collective: Collective) -> tuple[Array | None, float]:
    """Call the collective once for the result, and several times to measure it."""
    given = _input(collective, comm.rank)
    held = collective.held_after(comm.rank, RANKS, RANKS)
    how: dict[str, Any] = {"algorithm": choose(collective, RANKS, ELEMENTS * 4, {}).algorithm}
    method = getattr(comm, collective.name)
    if collective.single_array:
        array = np.zeros(ELEMENTS, np.float32) if given is None else given
        arrays: tuple[Any, ...] = (array,)
    else:
        arrays = (np.zeros(ELEMENTS // RANKS * len(held), np.float32) if held else None, given)
    method(*arrays, **how)
    result = arrays[0].copy() if held else None
    times = []
    for _ in range(CALLS):
        comm.barrier()
        began = time.perf_counter()
        method(*arrays, **how)
        times.append(time.perf_counter() - began)
    return result, sorted(times)[CALLS // 2]
