"""Executes programs event by event, in the native engine or, where it is not built, in Python."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unisono.simulator.actions import Array, Programs
from unisono.simulator.costs import Costs
from unisono.simulator.reference import NEVER, Times, run_events


class Outcome(NamedTuple):
    """The times of a simulation, per unit; ``times`` has the details where they were recorded."""

    unit_s: Array
    idle_s: Array
    times: Times | None


def run(programs: Programs, costs: Costs, room: tuple[Array, Array] | None = None) -> Outcome | None:
    """Execute all units; return None if some unit cannot finish: then the programs deadlock."""
    times = run_events(programs, costs, room)
    if (times.end == NEVER).any():
        return None
    return Outcome(*_summary(programs, costs, times), times)


def _summary(programs: Programs, costs: Costs, times: Times) -> tuple[Array, Array]:
    """Return the time of each unit, and the part of it in which its processor waits."""
    units = programs.units
    unit_s = np.zeros(units)
    busy_s = np.zeros(units)
    if len(programs.rows):
        unit = programs.unit
        np.maximum.at(unit_s, unit, times.end.max(axis=0))
        np.add.at(busy_s, unit, (times.end - times.start).sum(axis=0))
    return unit_s, np.maximum(unit_s - busy_s, 0.0)
