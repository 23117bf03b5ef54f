"""Stage 3: parameters that are whole only while they are needed.

::

    room 0   │ unit 0 ........ │ unit 2 ........ │ unit 4 ...
    room 1            │ unit 1 ........ │ unit 3 ........ │
    computes │        │ unit 0 │ unit 1 │ unit 2 │ unit 3 ...
                └─ gathered while the unit before it computes

A *room* is memory for one whole unit. Units take turns in two rooms (one, without prefetch), so that a model of any
depth needs the memory of two units, always the same pages, and nothing is allocated during a step. The parameters of
a unit are views into its room. Autograd may save such views in the forward pass and read them in the backward pass:
when the unit has come back into its room, the same views show the same values.

What is absent must not be read. A parameter that is absent shows NaN (one element, expanded to the shape). A view
that autograd has saved still shows the room, where another unit may be: the version that autograd checks is raised
while the unit is away, and put back when it returns, so a read out of turn is an error and never a wrong number.
When an optimiser has changed the shards, the version moves on for good.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import torch
from torch import Tensor

from unisono.errors import UsageError
from unisono.parallel.group import Group, Work
from unisono.parallel.sharding import Flat

ALIGNMENT = 64  # bytes: of the vectors in a room


class Room:
    """Memory for one unit at a time."""

    def __init__(self) -> None:
        self.guest: Guest | None = None
        self.nbytes = 0
        self.memory: Any = None

    def vectors(self, flats: Sequence[Flat]) -> list[Tensor]:
        """Return the vectors of a unit in this room."""
        found, offset = [], 0
        for flat in flats:
            nbytes = flat.padded_numel * flat.compute_dtype.itemsize
            found.append(self.memory[offset : offset + nbytes].view(flat.compute_dtype))
            offset += _aligned(nbytes)
        return found


class Guest:
    """A unit that is whole at times: in its room, on its way there (``works``), or absent."""

    def __init__(self, name: str, flats: Sequence[Flat], room: Room) -> None:
        self.name, self.flats, self.room = name, list(flats), room
        self.works: list[Work] = []
        self.is_whole = False
        self.busy = 0  # calls of its module that are running
        members = [member for flat in flats for member in flat.members]
        parameters = [member.parameter for member in members]
        self.parameters, self.parameter_names = tuple(parameters), [member.names[0] for member in members]
        self.version = 2 * max((parameter._version for parameter in parameters), default=0)
        room.nbytes = max(room.nbytes, sum(_aligned(f.padded_numel * f.compute_dtype.itemsize) for f in flats))

    def bind(self, nothings: dict[Any, Tensor]) -> None:
        """Take the views, when the room has its memory; and a tensor of no values for each dtype."""
        self.absent = [nothings[flat.compute_dtype].expand(shape) for flat in self.flats for shape in flat.shapes]
        self.vectors = self.room.vectors(self.flats)
        self.views = [v for flat, vector in zip(self.flats, self.vectors, strict=True) for v in flat.views(vector)]
        self.leave()

    def arrive(self) -> None:
        """Show the values that are in the room now."""
        self._show(self.views, self.version)
        self.is_whole = True

    def leave(self) -> None:
        """Show nothing; the room is free."""
        self._show(self.absent, self.version + 1)
        self.is_whole = False
        if self.room.guest is self:
            self.room.guest = None

    def written(self) -> str | None:
        """Return the name of a parameter that somebody has written into, or given other memory."""
        for name, parameter, place in zip(self.parameter_names, self.parameters, self.places, strict=True):
            if parameter._version != self.shown_version or parameter.data_ptr() != place:
                return name
        return None

    def _show(self, tensors: Sequence[Tensor], version: int) -> None:
        for parameter, tensor in zip(self.parameters, tensors, strict=True):
            parameter.data = tensor
        self.shown_version, self.places = version, [tensor.data_ptr() for tensor in tensors]
        torch._C._autograd._unsafe_set_version_counter(self.parameters, (version,) * len(self.parameters))


class Gathering:
    """Brings units into their rooms."""

    def __init__(
        self, group: Group, units: Sequence[tuple[str, int, Sequence[Flat]]], prefetches: bool, rooms_per_depth: int
    ) -> None:
        """Take the name, the depth (units around it) and the flats of each unit.

        A unit and the units around it run at the same time, so every depth has rooms of its own.
        """
        self.group, self.prefetches = group, prefetches
        rooms: dict[tuple[int, int], Room] = {}
        seen: dict[int, int] = {}
        self.guests: dict[str, Guest] = {}
        for name, depth, flats in units:
            turn = seen[depth] = seen.get(depth, -1) + 1
            room = rooms.setdefault((depth, turn % rooms_per_depth), Room())
            self.guests[name] = Guest(name, flats, room)
        self.rooms = list(rooms.values())
        flats = [flat for guest in self.guests.values() for flat in guest.flats]
        device = flats[0].device
        for room in self.rooms:
            room.memory = torch.empty(room.nbytes, dtype=torch.uint8, device=device)
        nothings = {dtype: _nothing(dtype, device) for dtype in {flat.compute_dtype for flat in flats}}
        self.nothings = list(nothings.values())
        for guest in self.guests.values():
            guest.bind(nothings)

    def need(self, name: str, phase: str) -> None:
        """Return when the unit is whole."""
        guest = self.guests[name]
        if guest.is_whole:
            return
        if not guest.works:
            self._start(guest, phase, async_op=False)
        for work in guest.works:
            work.wait()
        guest.works = []
        guest.arrive()

    def prefetch(self, name: str, phase: str) -> None:
        """Start to gather a unit, if its room is free."""
        guest = self.guests[name]
        if self.prefetches and guest.room.guest is None:
            self._start(guest, phase, async_op=True)

    def free(self, name: str) -> None:
        """Drop the whole unit; also one that has been prefetched and was not needed."""
        guest = self.guests[name]
        if guest.is_whole or guest.works:
            self._clear(guest.room)

    def change(self) -> None:
        """Take note that the shards have new values."""
        self.free_all()
        for guest in self.guests.values():
            guest.version += 2

    def free_all(self) -> None:
        """Drop all units, whatever state an exception has left them in."""
        for guest in self.guests.values():
            guest.busy = 0
            self.free(guest.name)

    def check_absent(self) -> None:
        """Raise if somebody has written into parameters that are absent: there is nowhere to keep the values."""
        written = None
        for guest in self.guests.values():
            if not guest.is_whole:
                name = guest.written()
                if name is not None:
                    written = written or f"parameter {name!r}"
                    guest.leave()
        for nothing in self.nothings:
            value = _nothing_of(nothing.dtype)
            if not bool(nothing.isnan() if value != value else nothing == value):
                written = written or "a parameter (through parameter.data)"
                nothing.fill_(value)
        if written is not None:
            _raise_written(written)

    def _start(self, guest: Guest, phase: str, async_op: bool) -> None:
        self._clear(guest.room)
        guest.room.guest = guest
        guest.works = [
            self.group.all_gather(vector, flat.shard, name=flat.name, phase=phase, async_op=async_op)
            for flat, vector in zip(guest.flats, guest.vectors, strict=True)
        ]

    def _clear(self, room: Room) -> None:
        guest = room.guest
        if guest is None:
            return
        if guest.busy:
            raise UsageError(
                f"unit {guest.name} still runs and its room is needed: another unit was called inside of its "
                "forward, but is no part of its module. Give only one of the two as a unit"
            )
        for work in guest.works:
            work.wait()  # the memory is still being written
        guest.works = []
        written = guest.written()
        guest.leave()
        if written is not None:
            _raise_written(f"parameter {written!r}")


def _raise_written(parameter: str) -> NoReturn:
    raise UsageError(
        f"Zero: {parameter} was written into, or given other memory, after the module was wrapped; in stage 3 it is "
        "made from shards each time that it is needed, and the change would be lost: use zero.load_state_dict(), or "
        "change the module before it is wrapped, or use stage 2"
    )


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _nothing(dtype: Any, device: Any) -> Tensor:
    """Return what an absent parameter shows: one element for all of its own."""
    return torch.full((), _nothing_of(dtype), dtype=dtype, device=device)


def _nothing_of(dtype: Any) -> float:
    return float("nan") if dtype.is_floating_point or dtype.is_complex else 0
