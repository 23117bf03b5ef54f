"""Finds the critical path of a simulation, from its last action back to the beginning."""

from __future__ import annotations

import numpy as np

from unisono.simulator.actions import Array, Programs
from unisono.simulator.costs import LAST, WHOLE, Costs
from unisono.simulator.prediction import CriticalPath, Hop
from unisono.simulator.reference import Times


def critical_path(programs: Programs, costs: Costs, times: Times) -> CriticalPath:
    """Return the chain of actions and messages that ends last.

    The start of an action was determined by the message that arrived last, or by the action that its processor
    executed before; that of a message by the action that sent it.
    """
    hops: list[Hop] = []
    parts = dict.fromkeys(("latency_s", "bandwidth_s", "overhead_s", "copy_s", "reduce_s", "waiting_s"), 0.0)
    unit_of_action, rows, sender_of = programs.unit, programs.rows, programs.sender
    number, action = np.unravel_index(int(np.argmax(times.end)), times.end.shape) if times.end.size else (0, -1)
    ends = _Ends(programs, times)
    while action >= 0:
        which = LAST if number == costs.passes - 1 else WHOLE
        start, end = float(times.start[number, action]), float(times.end[number, action])
        unit = int(unit_of_action[action])
        rank, step = int(programs.ranks[unit]), int(rows["step"][action])
        parts["overhead_s"] += float(costs.receive_overhead_s[action] + costs.send_overhead_s[action])
        parts["copy_s"] += float(costs.receive_copy_s[which, action] + costs.send_copy_s[which, action])
        parts["reduce_s"] += float(costs.reduce_s[which, action])
        hops.append(Hop("action", rank, step, int(number), start, end))
        earlier = ends.before(unit, int(number), int(action), start)
        sender = int(sender_of[action])
        arrived = float(times.arrival[number, action])
        if sender >= 0 and (earlier is None or arrived >= float(times.end[earlier])):
            handed = float(times.end[number, sender])
            latency, transfer = float(costs.latency_s[action]), float(costs.transfer_s[which, action])
            parts["latency_s"] += latency
            parts["bandwidth_s"] += transfer
            parts["waiting_s"] += start - handed - latency - transfer
            peer, nbytes = int(rows["source"][action]), float(costs.message_bytes[which, action])
            hops.append(Hop("message", rank, step, int(number), handed, start, peer, nbytes))
            action = sender
        elif earlier is not None:
            parts["waiting_s"] += start - float(times.end[earlier])
            number, action = earlier
        else:
            parts["waiting_s"] += start
            break
    return CriticalPath(tuple(reversed(hops)), **parts)


class _Ends:
    """Finds the action that a processor executed before another."""

    def __init__(self, programs: Programs, times: Times) -> None:
        self.programs, self.times = programs, times
        self.single = times.end.shape[0] == 1
        self.sorted: dict[int, tuple[Array, Array]] = {}

    def before(self, unit: int, number: int, action: int, start: float) -> tuple[int, int] | None:
        """Return pass and action of the last action of a unit that ended by ``start``, other than the action."""
        first, last = int(self.programs.first[unit]), int(self.programs.first[unit + 1])
        if self.single:
            return (number, action - 1) if action > first else None
        if unit not in self.sorted:
            ends = self.times.end[:, first:last]
            passes = np.arange(ends.shape[0])[:, np.newaxis]
            # Actions without duration end at the same time: they follow each other in order.
            order = np.lexsort(
                (np.tile(np.arange(last - first), len(passes)), self.times.start[:, first:last].ravel(), ends.ravel())
            )
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            self.sorted[unit] = (order, place)
        order, place = self.sorted[unit]
        at = int(place[number * (last - first) + action - first])
        if at == 0:
            return None
        before, offset = divmod(int(order[at - 1]), last - first)
        return before, first + offset
