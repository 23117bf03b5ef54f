"""The times of the messages and steps of a simulated schedule.

The compiler may merge ops. A timeline has the messages and steps of the *schedule*, and the messages of each pass
where a call has several segments. A step ends when everything in it, and before it, has ended in all passes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unisono.networks import Network
from unisono.schedule import Schedule
from unisono.simulator.actions import Array, Programs
from unisono.simulator.costs import Costs
from unisono.simulator.link_use import LinkUse, link_use
from unisono.simulator.reference import Times


@dataclass(frozen=True)
class Timeline:
    """When everything happens, in seconds since the ranks entered the call.

    - ``source`` and ``target`` are the ranks of each message. Messages are sorted by sender, then by receiver, then
      by their order in the channel.
    - ``leave_s``: when a message begins to leave; ``arrival_s``: when it has arrived; ``done_s``: when its receiver
      has stored or added it. These have a row for each pass, and a column for each message.
    - ``step_s`` has an array for each rank: when each of its steps is over.
    - ``route`` is the route of each message, an index into ``routes``; a route lists links, then -1.
    - ``use`` says how much of the bandwidth of each link is in use; None where it was not computed, as for very many
      messages.
    """

    source: Array
    target: Array
    leave_s: Array
    arrival_s: Array
    done_s: Array
    step_s: tuple[Array, ...]
    route: Array
    routes: Array
    use: LinkUse | None


def timeline_of(
    schedule: Schedule, programs: Programs, costs: Costs, times: Times, network: Network, contention: bool,
    begin_s: float, with_use: bool = True,
) -> Timeline:  # fmt: skip
    """Return the timeline of a simulation in which every unit is a rank; ranks enter the call ``begin_s`` earlier."""
    received = programs.receives
    source, target = programs.rows["source"][received].astype(np.int64), programs.rank[received]
    order = np.lexsort((received, target, source))  # a channel is read in the order of the receiver's program
    received = received[order]
    return Timeline(
        source=source[order], target=target[order],
        leave_s=times.leave[:, programs.sender[received]] + begin_s,
        arrival_s=times.arrival[:, received] + begin_s,
        done_s=times.end[:, received] + begin_s,
        step_s=tuple(_step_ends(schedule, programs, times, rank) + begin_s for rank in range(schedule.size)),
        route=costs.pair[received], routes=costs.routes,
        use=link_use(programs, costs, times, network, contention, begin_s) if with_use else None,
    )  # fmt: skip


def _step_ends(schedule: Schedule, programs: Programs, times: Times, rank: int) -> Array:
    """Return when each step of a rank is over; a step without actions, when the one before it is."""
    ends = np.zeros(sum(1 for _ in schedule.program(rank)))
    actions = slice(int(programs.first[rank]), int(programs.first[rank + 1]))
    rows, end = programs.rows[actions], times.end[:, actions].max(axis=0)
    if not len(ends) or not len(rows):
        return ends
    for name in ("step", "sent_step"):
        # A copy into the result after the last step belongs to that step.
        np.maximum.at(ends, np.clip(rows[name], 0, len(ends) - 1), end)
    return np.asarray(np.maximum.accumulate(ends))
