"""Executes programs event by event, in the native engine or, where it is not built, in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from unisono.errors import EngineMissing
from unisono.simulator.actions import Array, Programs
from unisono.simulator.costs import Costs
from unisono.simulator.reference import NEVER, Times, run_events
from unisono.simulator.reference_flows import run_events_on_links

try:
    from unisono import _engine
except EngineMissing:
    _engine = None  # type: ignore[assignment]

Room = tuple[Array, Array]
Progress = Callable[[int], None]
_NO_INDICES = np.empty(0, dtype=np.int64)


class Outcome(NamedTuple):
    """The times of a simulation, per unit; ``times`` has the details where they were recorded."""

    unit_s: Array
    idle_s: Array
    times: Times | None


def run(
    programs: Programs, costs: Costs, room: Room | None = None, bandwidth: Array | None = None, record: bool = True,
    progress: Progress | None = None,
) -> Outcome | None:  # fmt: skip
    """Execute all units; return None if some unit cannot finish: then the programs deadlock.

    ``room`` comes from ``actions.room_of`` (None: channels are unbounded). With the ``bandwidth`` of each link,
    messages share links. ``record`` keeps the times of all actions; ``progress`` is called with the number of actions
    executed so far.
    """
    if _engine is None:
        return run_in_python(programs, costs, room, bandwidth)
    found = _engine.simulate_events(**_arguments(programs, costs, room, bandwidth), record=record, progress=progress)
    if not found["finished"]:
        return None
    times = None
    if record:
        times = Times(0, 0)
        shape = (costs.passes, len(programs.rows))
        for name in ("start", "end", "leave", "arrival"):
            setattr(times, name, found[name].reshape(shape))
        times.level = found["level"]
    return Outcome(found["unit_end"], np.maximum(found["unit_end"] - found["unit_busy"], 0.0), times)


def run_in_python(
    programs: Programs, costs: Costs, room: Room | None = None, bandwidth: Array | None = None
) -> Outcome | None:
    """Do the same in plain Python."""
    if bandwidth is None:
        times = run_events(programs, costs, room)
    else:
        times = run_events_on_links(programs, costs, room, bandwidth)
    if (times.end == NEVER).any():
        return None
    unit_s, busy_s = np.zeros(programs.units), np.zeros(programs.units)
    if len(programs.rows):
        np.maximum.at(unit_s, programs.unit, times.end.max(axis=0))
        np.add.at(busy_s, programs.unit, (times.end - times.start).sum(axis=0))
    return Outcome(unit_s, np.maximum(unit_s - busy_s, 0.0), times)


def _arguments(programs: Programs, costs: Costs, room: Room | None, bandwidth: Array | None) -> dict[str, Any]:
    """Return the arguments of the native loop."""
    rows = programs.rows
    none = np.empty((2, 0))
    shares = bandwidth is not None and costs.routes.shape[1] > 0
    return {
        "first": _column(programs.first, np.int64), "sender": _column(programs.sender, np.int64),
        "step": _column(rows["step"], np.int32), "sent_step": _column(rows["sent_step"], np.int32),
        "sends": _column(rows["to"] >= 0, np.uint8), "busy_s": np.ascontiguousarray(costs.busy_s),
        "leaving_s": costs.leaving_s, "occupied_s": costs.occupied_s, "rendezvous_s": costs.rendezvous_s,
        "flight_s": costs.flight_s, "room": _NO_INDICES if room is None else _column(room[0], np.int64),
        "room_passes": _NO_INDICES if room is None else _column(room[1], np.int64),
        "passes": costs.passes, "tracks": costs.tracks, "ports": costs.ports,
        "bandwidth": _column(bandwidth, np.float64) if shares else np.empty(0),
        "routes": _column(costs.routes.ravel() if shares else _NO_INDICES, np.int32),
        "weights": _column(costs.weights.ravel() if shares and costs.weights is not None else _NO_INDICES, np.int32),
        "route": _column(costs.pair if shares else _NO_INDICES, np.int64),
        "message_bytes": np.ascontiguousarray(costs.link_bytes) if shares else none,
        "hops": costs.routes.shape[1] if shares else 0,
    }  # fmt: skip


def _column(values: Any, dtype: Any) -> Array:
    return np.ascontiguousarray(values, dtype=dtype)
