"""Finds the critical path of a simulation, from its last action back to the beginning.

The start of an action was determined by the message that it received or by the action that its processor executed
before. The time at which a message left was determined by the action that sent it, by the message before it in the
same port, or, in a rendezvous, by the receiver; the time at which it arrived by its latency and bytes, or by the
message before it in the port of the receiver. Times are exact multiples of a quantum, so equality tells which.
"""

from __future__ import annotations

import numpy as np

from unisono.simulator.actions import Array, Programs
from unisono.simulator.costs import LAST, WHOLE, Costs
from unisono.simulator.prediction import CriticalPath, Hop
from unisono.simulator.reference import Times

# An action of a pass.
Place = tuple[int, int]


def critical_path(programs: Programs, costs: Costs, times: Times, contention: bool = False) -> CriticalPath:
    """Return the chain of actions and messages that ends last; ``contention``: messages shared links."""
    return _Walk(programs, costs, times, contention).path()


class _Walk:
    def __init__(self, programs: Programs, costs: Costs, times: Times, contention: bool) -> None:
        self.programs, self.costs, self.times, self.contention = programs, costs, times, contention
        self.unit = programs.unit
        self.parts = dict.fromkeys(("latency_s", "bandwidth_s", "overhead_s", "copy_s", "reduce_s", "waiting_s"), 0.0)
        self.hops: list[Hop] = []
        self.held = bool(len(costs.flight_s)) and bool((costs.flight_s < costs.latency_s).any())
        self.released = self._released()
        self.by_sender: Array | None = None
        self.senders: Array = programs.sender

    def path(self) -> CriticalPath:
        """Walk from the end to the beginning."""
        end = self.times.end
        if end.size:
            number, action = np.unravel_index(int(np.argmax(end)), end.shape)
            place: Place | None = (int(number), int(action))
            while place is not None:
                place = self._before_action(place)
        return CriticalPath(tuple(reversed(self.hops)), **self.parts)

    def _which(self, number: int) -> int:
        return LAST if number == self.costs.passes - 1 else WHOLE

    def _released(self) -> Array:
        """Return when the message of each action has left the port of its sender."""
        costs, times = self.costs, self.times
        if not self.contention:
            which = [self._which(number) for number in range(costs.passes)]
            return np.asarray(times.leave + costs.leaving_s[which])
        released = times.leave.copy()
        received = self.programs.receives
        for number in range(costs.passes):
            through = times.arrival[number, received] - costs.flight_s[received]
            np.maximum.at(released[number], self.programs.sender[received], through)
        return released

    def _hop(self, kind: str, place: Place, start: float, end: float) -> None:
        number, action = place
        row = self.programs.rows[action]
        rank = int(self.programs.ranks[self.unit[action]])
        is_message = kind == "message"
        nbytes = float(self.costs.message_bytes[self._which(number), action]) if is_message else 0.0
        peer = int(row["source"]) if is_message else None
        self.hops.append(Hop(kind, rank, int(row["step"]), number, start, end, peer, nbytes))

    def _before_action(self, place: Place) -> Place | None:
        """Account for an action; return the action before it on the path."""
        number, action = place
        costs, which = self.costs, self._which(number)
        start, end = float(self.times.start[place]), float(self.times.end[place])
        self._hop("action", place, start, end)
        self.parts["overhead_s"] += float(costs.receive_overhead_s[action] + costs.send_overhead_s[which, action])
        self.parts["copy_s"] += float(costs.receive_copy_s[which, action] + costs.send_copy_s[which, action])
        self.parts["reduce_s"] += float(costs.reduce_s[which, action])
        if start == 0.0:
            return None
        if self.programs.sender[action] >= 0 and float(self.times.arrival[place]) == start:
            return self._before_arrival(place)
        earlier = self._ended(int(self.unit[action]), start, place)
        if earlier is None:  # the channel had no room
            readers = self._readers(action)
            found = [self._ended(int(self.unit[reader]), start, place) for reader in readers]
            earlier = next((each for each in found if each is not None), None)
        if earlier is None:
            self.parts["waiting_s"] += start
        return earlier

    def _before_arrival(self, place: Place) -> Place | None:
        """Account for messages up to the action that the path goes on with."""
        costs = self.costs
        while True:
            number, action = place
            arrival = float(self.times.arrival[place])
            which, sender = self._which(number), int(self.programs.sender[action])
            latency, transfer = float(costs.latency_s[action]), float(costs.transfer_s[which, action])
            staged = 0.0 if self.held else float(costs.flight_s[action]) - latency
            left = float(self.times.leave[number, sender])
            self._hop("message", place, left, arrival)
            waited = arrival - left - latency - transfer - staged
            self.parts["bandwidth_s"] += transfer
            if waited > 0.0 and not self.contention:
                begin = arrival - float(costs.occupied_s[which, action])
                before = self._at(self.times.arrival, int(self.unit[action]), begin, place)
                if before is not None:  # it took its turn after another message
                    self.parts["latency_s"] += latency if self.held else 0.0
                    place = before
                    continue
            self.parts["latency_s"] += latency
            self.parts["copy_s"] += staged
            self.parts["waiting_s"] += waited
            return self._before_leaving((number, sender), action)

    def _before_leaving(self, place: Place, reader: int) -> Place | None:
        """Account for the time between the end of an action and the departure of its message."""
        while True:
            number, action = place
            left, handed = float(self.times.leave[place]), float(self.times.end[place])
            if left == handed:
                return place
            before = self._at(self.released, int(self.unit[action]), left, place)
            if before is None:
                break
            readers = self._readers(before[1])
            occupied = left - float(self.times.leave[before])
            transfer = float(self.costs.transfer_s[self._which(before[0]), readers].max(initial=0.0))
            latency = float(self.costs.latency_s[readers].max(initial=0.0)) if self.held else 0.0
            self.parts["bandwidth_s"] += transfer
            self.parts["latency_s"] += latency
            self.parts["waiting_s"] += occupied - transfer - latency
            place, reader = before, int(readers[0]) if len(readers) else reader
        extra = max(0.0, float(self.costs.rendezvous_s[self._which(number), reader]))
        self.parts["latency_s"] += extra
        if left - extra == handed:
            return place
        ready = self._ended(int(self.unit[reader]), left - extra, place)
        if ready is None:
            self.parts["waiting_s"] += left - extra - handed
            return place
        return ready

    def _readers(self, action: int) -> Array:
        """Return the actions that receive the message of an action."""
        if self.by_sender is None:
            self.by_sender = np.argsort(self.programs.sender, kind="stable")
            self.senders = self.programs.sender[self.by_sender]
        begin, end = np.searchsorted(self.senders, [action, action + 1])
        return self.by_sender[begin:end]

    def _ended(self, unit: int, when: float, other: Place) -> Place | None:
        """Return the last action of a unit that ended at a time."""
        return self._at(self.times.end, unit, when, other)

    def _at(self, table: Array, unit: int, when: float, other: Place) -> Place | None:
        """Return the last action of a unit with this time in a table, before another one."""
        first, last = int(self.programs.first[unit]), int(self.programs.first[unit + 1])
        if first <= other[1] < last and table is self.times.end:
            # The action just before it, usually; actions without duration end when they start.
            number, action = other
            if action > first and float(table[number, action - 1]) == when:
                return number, action - 1
        found = np.argwhere(table[:, first:last] == when)
        places = [(int(number), first + int(offset)) for number, offset in found]
        places = [place for place in places if place != other and self._precedes(place, other)]
        return max(places, key=lambda place: (place[0] == other[0], place[0], place[1]), default=None)

    def _precedes(self, place: Place, other: Place) -> bool:
        """Return whether an action may have come before another; those without duration could form a cycle."""
        if self.unit[place[1]] != self.unit[other[1]]:
            return float(self.times.start[place]) < float(self.times.end[other])
        return (float(self.times.start[place]), *place) < (float(self.times.start[other]), *other)
