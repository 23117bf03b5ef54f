"""Stage 3: parameters that are whole only while they are needed.

::

    buffer 0   │ unit 0 ........ │ unit 2 ........ │ unit 4 ...
    buffer 1            │ unit 1 ........ │ unit 3 ........ │
    computes   │        │ unit 0 │ unit 1 │ unit 2 │ unit 3 ...
                  └─ gathered while the previous unit computes

A *unit buffer* is memory for one whole unit. Units alternate between two buffers (one, without prefetch), so a model
of any depth needs the memory of two units, always the same pages, and a step allocates nothing. The parameters of a
unit are views of its buffer. Autograd may save such views in the forward pass and read them in the backward pass:
once the unit is gathered into its buffer again, the same views have the same values.

An *absent* unit is not in its buffer, and must not be read. An absent parameter shows NaN (one element, expanded to
the shape). A view that autograd saved still refers to the buffer, which may hold another unit: the version that
autograd checks is raised while the unit is absent and restored when it returns, so a read at the wrong time is an
error and never a wrong number. After an optimiser has changed the shards, the version changes permanently.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from unisono.errors import UsageError
from unisono.parallel.group import Group, Work
from unisono.parallel.sharding import Flat
from unisono.parallel.zero_messages import BUFFER_IN_USE, PARAMETER, PARAMETER_DATA, WRITTEN_IN_STAGE_3

ALIGNMENT = 64  # bytes, of the vectors in a buffer


class UnitBuffer:
    """Memory for one unit at a time."""

    def __init__(self) -> None:
        self.resident: ResidentUnit | None = None
        self.nbytes = 0
        self.memory: Any = None

    def vectors(self, flats: Sequence[Flat]) -> list[Tensor]:
        """Return the vectors of a unit in this buffer."""
        vectors, offset = [], 0
        for flat in flats:
            nbytes = flat.padded_numel * flat.compute_dtype.itemsize
            vectors.append(self.memory[offset : offset + nbytes].view(flat.compute_dtype))
            offset += _aligned(nbytes)
        return vectors


class ResidentUnit:
    """A unit that shares a buffer: it is whole in the buffer, being gathered (``works``), or absent."""

    def __init__(self, name: str, flats: Sequence[Flat], buffer: UnitBuffer) -> None:
        self.name, self.flats, self.buffer = name, list(flats), buffer
        self.works: list[Work] = []
        self.is_whole = False
        self.busy = 0  # calls of its module that are running
        members = [member for flat in flats for member in flat.members]
        parameters = [member.parameter for member in members]
        self.parameters, self.parameter_names = tuple(parameters), [member.names[0] for member in members]
        self.version = 2 * max((parameter._version for parameter in parameters), default=0)
        buffer.nbytes = max(buffer.nbytes, sum(_aligned(f.padded_numel * f.compute_dtype.itemsize) for f in flats))

    def bind(self, placeholders: dict[Any, Tensor]) -> None:
        """Create the views, once the buffer has memory; ``placeholders`` holds absent values by dtype."""
        self.absent = [placeholders[flat.compute_dtype].expand(shape) for flat in self.flats for shape in flat.shapes]
        self.vectors = self.buffer.vectors(self.flats)
        self.views = [v for flat, vector in zip(self.flats, self.vectors, strict=True) for v in flat.views(vector)]
        self.view_addresses = [view.data_ptr() for view in self.views]
        self.absent_addresses = [tensor.data_ptr() for tensor in self.absent]
        self.release()

    def install(self) -> None:
        """Make the parameters views of the buffer, which holds their values."""
        self._assign(self.views, self.view_addresses, self.version)
        self.is_whole = True

    def release(self) -> None:
        """Make the parameters absent; the buffer is free."""
        self._assign(self.absent, self.absent_addresses, self.version + 1)
        self.is_whole = False
        if self.buffer.resident is self:
            self.buffer.resident = None

    def find_written(self) -> str | None:
        """Return the name of a parameter that was written to or given other memory, or None."""
        for name, parameter, address in zip(self.parameter_names, self.parameters, self.addresses, strict=True):
            if parameter._version != self.assigned_version or parameter.data_ptr() != address:
                return name
        return None

    def _assign(self, tensors: Sequence[Tensor], addresses: list[int], version: int) -> None:
        for parameter, tensor in zip(self.parameters, tensors, strict=True):
            parameter.data = tensor
        self.assigned_version, self.addresses = version, addresses
        torch._C._autograd._unsafe_set_version_counter(self.parameters, (version,) * len(self.parameters))


class UnitGatherer:
    """Gathers units into their buffers."""

    def __init__(
        self, group: Group, units: Sequence[tuple[str, int, Sequence[Flat]]], prefetches: bool, buffers_per_depth: int
    ) -> None:
        """Allocate the buffers; ``units`` holds the name, the depth (enclosing units) and the flats of each unit.

        A unit and the units that enclose it run at the same time, so every depth has separate buffers.
        """
        self.group, self.prefetches = group, prefetches
        buffers: dict[tuple[int, int], UnitBuffer] = {}
        count: dict[int, int] = {}
        self.residents: dict[str, ResidentUnit] = {}
        for name, depth, flats in units:
            turn = count[depth] = count.get(depth, -1) + 1
            buffer = buffers.setdefault((depth, turn % buffers_per_depth), UnitBuffer())
            self.residents[name] = ResidentUnit(name, flats, buffer)
        self.buffers = list(buffers.values())
        flats = [flat for resident in self.residents.values() for flat in resident.flats]
        device = flats[0].device
        for buffer in self.buffers:
            buffer.memory = torch.empty(buffer.nbytes, dtype=torch.uint8, device=device)
        placeholders = {dtype: _placeholder(dtype, device) for dtype in {flat.compute_dtype for flat in flats}}
        self.placeholders = list(placeholders.values())
        for resident in self.residents.values():
            resident.bind(placeholders)

    def gather(self, name: str, phase: str) -> None:
        """Gather a unit; return when it is whole."""
        resident = self.residents[name]
        if resident.is_whole:
            return
        if not resident.works:
            self._start(resident, phase, async_op=False)
        for work in resident.works:
            work.wait()
        resident.works = []
        resident.install()

    def prefetch(self, name: str, phase: str) -> None:
        """Start to gather a unit, if its buffer is free."""
        resident = self.residents[name]
        if self.prefetches and resident.buffer.resident is None:
            self._start(resident, phase, async_op=True)

    def free(self, name: str) -> None:
        """Make a unit absent, also one that was prefetched and not needed."""
        resident = self.residents[name]
        if resident.is_whole or resident.works:
            self._clear(resident.buffer)

    def invalidate(self) -> None:
        """Discard all gathered values: the shards have new ones."""
        self.free_all()
        for resident in self.residents.values():
            resident.version += 2

    def free_all(self) -> None:
        """Make all units absent, whatever state an exception left them in."""
        for resident in self.residents.values():
            resident.busy = 0
            self.free(resident.name)

    def check_unwritten(self) -> None:
        """Raise if absent parameters were written to: there is no memory that would keep the values."""
        written = None
        for resident in self.residents.values():
            if not resident.is_whole:
                name = resident.find_written()
                if name is not None:
                    written = written or PARAMETER(name=name)
                    resident.release()
        for placeholder in self.placeholders:
            value, current = _placeholder_value(placeholder.dtype), placeholder.item()
            if current != value and (value == value or current == current):  # NaN differs from itself
                written = written or PARAMETER_DATA()
                placeholder.fill_(value)
        if written is not None:
            raise UsageError(WRITTEN_IN_STAGE_3(parameter=written))

    def _start(self, resident: ResidentUnit, phase: str, async_op: bool) -> None:
        self._clear(resident.buffer)
        resident.buffer.resident = resident
        resident.works = [
            self.group.all_gather(vector, flat.shard, name=flat.name, phase=phase, async_op=async_op)
            for flat, vector in zip(resident.flats, resident.vectors, strict=True)
        ]

    def _clear(self, buffer: UnitBuffer) -> None:
        resident = buffer.resident
        if resident is None:
            return
        if resident.busy:
            raise UsageError(BUFFER_IN_USE(unit=resident.name))
        for work in resident.works:
            work.wait()  # the collective still writes to the buffer
        resident.works = []
        written = resident.find_written()
        resident.release()
        if written is not None:
            raise UsageError(WRITTEN_IN_STAGE_3(parameter=PARAMETER(name=written)))


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _placeholder(dtype: Any, device: Any) -> Tensor:
    """Return the element that all elements of an absent parameter are views of."""
    return torch.full((), _placeholder_value(dtype), dtype=dtype, device=device)


def _placeholder_value(dtype: Any) -> float:
    return float("nan") if dtype.is_floating_point or dtype.is_complex else 0
