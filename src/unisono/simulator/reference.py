"""The event loop in plain Python: the definition of what a simulation computes, for tests and small programs.

The processor of a unit executes one action after another. An action starts when its message has arrived and the
channels that it writes have room; at its end it hands a message over. The message waits for a free port of the
sender, then leaves: it occupies the port for ``leaving_s``, and its head arrives ``flight_s`` later. There it waits
for a free port of the receiver and occupies that for ``occupied_s``; then it has arrived. A message that uses a
rendezvous does not leave before its receiver has reached the step in which it receives.

With several tracks, a unit works on several passes at once: its processor continues with the pass that it worked on
last, and if that has to wait, with the oldest one that can continue.

The native event loop (engine/src/simulator) computes the same times; tests compare the two.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from unisono.simulator.actions import Array, Programs
from unisono.simulator.costs import LAST, WHOLE, Costs

# The kinds of events, in the order in which events of the same time are handled.
FLOW_END, ARRIVE, WAKE, LEAVE, HEAD = range(5)
NEVER = float("inf")


class Times:
    """The outcome: arrays with a row for each pass and a column for each action; infinity is never."""

    def __init__(self, actions: int, passes: int) -> None:
        self.start = np.full((passes, actions), NEVER)
        self.end = np.full((passes, actions), NEVER)
        self.leave = np.full((passes, actions), NEVER)  # when the message that it sends begins to leave
        self.arrival = np.full((passes, actions), NEVER)  # of the message that it receives
        self.level = np.zeros(actions, dtype=np.int32)  # counted from 1


def run_events(programs: Programs, costs: Costs, room: tuple[Array, Array] | None = None) -> Times:
    """Execute all units; ``room`` comes from ``actions.room_of``, or is None where channels are unbounded."""
    return Loop(programs, costs, room).run()


class Loop:
    """The state of a simulation in which messages share nothing but the ports of their ranks."""

    def __init__(self, programs: Programs, costs: Costs, room: tuple[Array, Array] | None) -> None:
        self.costs, self.room = costs, room
        self.times = Times(len(programs.rows), costs.passes)
        self.queue: list[tuple[float, int, int, int]] = []
        units = programs.units
        self.first, self.unit, self.sender = programs.first.tolist(), programs.unit.tolist(), programs.sender.tolist()
        self.sends = (programs.rows["to"] >= 0).tolist()
        self.step, self.sent_step = programs.rows["step"].tolist(), programs.rows["sent_step"].tolist()
        self.busy_s, self.leaving_s = costs.busy_s.tolist(), costs.leaving_s.tolist()
        self.flight_s, self.occupied_s = costs.flight_s.tolist(), costs.occupied_s.tolist()
        self.rendezvous_s = costs.rendezvous_s.tolist()
        self.readers: list[list[int]] = [[] for _ in self.sender]  # the actions that receive the message of an action
        for action, sender in enumerate(self.sender):
            if sender >= 0:
                self.readers[sender].append(action)
        self.busy_until = [0.0] * units
        self.out_ports = [[0.0] * costs.ports for _ in range(units)]
        self.in_ports = [[0.0] * costs.ports for _ in range(units)]
        # Of each unit and track: pass and action.
        self.position = [[(track, self.first[unit]) for track in range(costs.tracks)] for unit in range(units)]
        self.current = [0] * units  # the track of the last action
        self.arrived: set[tuple[int, int]] = set()
        self.read: dict[tuple[int, int], float] = {}  # when a message has left its channel
        self.posted: dict[tuple[int, int], float] = {}
        self.handed: dict[tuple[int, int], float] = {}  # messages that have not left
        self.levels = [(-1, 0, 0)] * units  # the step of a unit, the level before it, and the level so far
        self.message_level: dict[int, int] = {}

    def run(self) -> Times:
        """Handle events until there are none."""
        for unit, tracks in enumerate(self.position):
            for number, action in tracks:
                self._post(unit, number, action, 0.0)
            self._push(0.0, WAKE, unit, 0)
        handlers: list[Any] = [self._end_flow, self._arrive, self._wake, self._leave, self._head]
        now = 0.0
        while self._has_event(now):
            now, kind, number, index = heapq.heappop(self.queue)
            handlers[kind](now, index, number)
        return self.times

    def _has_event(self, now: float) -> bool:
        return bool(self.queue)

    def _end_flow(self, now: float, flow: int, version: int) -> None:
        raise NotImplementedError

    def _push(self, time: float, kind: int, index: int, number: int) -> None:
        heapq.heappush(self.queue, (time, kind, number, index))

    def _which(self, number: int) -> int:
        return LAST if number == self.costs.passes - 1 else WHOLE

    # ---- processors ----

    def _wake(self, now: float, unit: int, _: int) -> None:
        if now < self.busy_until[unit] or self.first[unit] == self.first[unit + 1]:
            return
        tracks = self.position[unit]
        running = [track for track in range(len(tracks)) if tracks[track][0] < self.costs.passes]
        for track in sorted(running, key=lambda each: (each != self.current[unit], tracks[each][0])):
            if self._can_run(now, *tracks[track]):
                self.current[unit] = track
                self._execute(now, unit, track)
                return

    def _can_run(self, now: float, number: int, action: int) -> bool:
        if self.sender[action] >= 0 and (number, action) not in self.arrived:
            return False
        return all(self._has_room(now, number, reader) for reader in self.readers[action])

    def _has_room(self, now: float, number: int, reader: int) -> bool:
        if self.room is None:
            return True
        earlier = number - int(self.room[1][reader]) * self.costs.tracks
        return earlier < 0 or self.read.get((earlier, int(self.room[0][reader])), NEVER) <= now

    def _execute(self, now: float, unit: int, track: int) -> None:
        number, action = self.position[unit][track]
        end = now + self.busy_s[self._which(number)][action]
        self.times.start[number, action], self.times.end[number, action] = now, end
        self.busy_until[unit] = end
        if number == 0:
            self._set_level(unit, action)
        if self.sender[action] >= 0 and self.room is not None:
            self.read[number, action] = end
            self._push(end, WAKE, self.unit[self.sender[action]], 0)
        if self.sends[action]:
            self.handed[number, action] = end
            self._try_to_leave(number, action)
        is_last = action + 1 == self.first[unit + 1]
        self.position[unit][track] = (
            (number + self.costs.tracks, self.first[unit]) if is_last else (number, action + 1)
        )
        self._post(unit, *self.position[unit][track], end)
        self._push(end, WAKE, unit, 0)

    def _set_level(self, unit: int, action: int) -> None:
        """Compute levels as the network of the verifier does: sends of a step precede what it receives."""
        step, before, reached = self.levels[unit]
        if self.step[action] > step:  # a copy at the end of a program belongs to no step
            step, before, reached = self.step[action], reached, reached + 1
        if self.sender[action] >= 0:
            reached = max(reached, self.message_level[action])
        self.times.level[action] = reached
        if self.sent_step[action] > step:
            step, before, reached = self.sent_step[action], reached, reached + 1
        for reader in self.readers[action]:
            self.message_level[reader] = before + 1
        self.levels[unit] = (step, before, reached)

    # ---- messages ----

    def _post(self, unit: int, number: int, action: int, now: float) -> None:
        """Make a unit ready for the messages of the step that it has reached."""
        if number >= self.costs.passes or action == self.first[unit + 1]:
            return
        step = self.step[action]
        while action < self.first[unit + 1] and self.step[action] == step:
            if self.sender[action] >= 0 and (number, action) not in self.posted:
                self.posted[number, action] = now
                if (number, self.sender[action]) in self.handed:
                    self._try_to_leave(number, self.sender[action])
            action += 1

    def _try_to_leave(self, number: int, action: int) -> None:
        """Let a message leave if all its receivers are ready, or do not have to be."""
        time = handed = self.handed[number, action]
        for reader in self.readers[action]:
            extra = self.rendezvous_s[self._which(number)][reader]
            if extra >= 0.0:
                if (number, reader) not in self.posted:
                    return
                time = max(time, max(handed, self.posted[number, reader]) + extra)
        del self.handed[number, action]
        self._push(time, LEAVE, action, number)

    def _leave(self, now: float, action: int, number: int) -> None:
        ports = self.out_ports[self.unit[action]]
        port = ports.index(min(ports))
        begin = max(now, ports[port])
        ports[port] = begin + self.leaving_s[self._which(number)][action]
        self.times.leave[number, action] = begin
        for reader in self.readers[action]:
            self._push(begin + self.flight_s[reader], HEAD, reader, number)

    def _head(self, now: float, action: int, number: int) -> None:
        ports = self.in_ports[self.unit[action]]
        port = ports.index(min(ports))
        ports[port] = max(now, ports[port]) + self.occupied_s[self._which(number)][action]
        self.times.arrival[number, action] = ports[port]
        self._push(ports[port], ARRIVE, action, number)

    def _arrive(self, now: float, action: int, number: int) -> None:
        self.arrived.add((number, action))
        self._push(now, WAKE, self.unit[action], 0)
