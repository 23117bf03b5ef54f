"""A mesh arranges ranks along two or more axes, so that strategies can be combined.

::

    mesh(group, dp=2, tp=3)            tp ───>
                                  dp   0  1  2      the tp group of rank 4: 3, 4, 5
                                  │    3  4  5      the dp group of rank 4: 1, 4
                                  v

Neighbouring ranks are on the last axis: use it for the strategy that communicates the most. Ranks of one host are
neighbours, whatever their numbers: ranks that are placed on the hosts in turn are arranged host by host.
"""

from __future__ import annotations

from math import prod
from typing import Any

from unisono.errors import UsageError
from unisono.message import listed
from unisono.parallel.group import Group, group_of
from unisono.parallel.messages import (
    HOSTS_NOT_KNOWN,
    MULTIPLE_OF,
    NO_AXES,
    NO_SUCH_AXIS,
    RESERVED_AXIS_NAME,
    SEVERAL_OPEN_AXES,
    UNEQUAL_HOSTS,
    WRONG_AXIS_SIZE,
    WRONG_MESH_SIZE,
    WRONG_REPLICATE,
)


class Mesh:
    """The groups that this rank belongs to: one for each axis, as ``mesh.dp`` or ``mesh["dp"]``.

    ``group``: all ranks of the mesh. ``sizes``: the number of ranks on each axis, by its name.
    ``mesh()`` creates one. The attribute ``coordinates`` holds the position of this rank on each axis.
    """

    def __init__(self, group: Group, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        self.coordinates = _coordinates(_position(group), sizes)
        self._groups: dict[str, Group] = {}
        for axis, here in self.coordinates.items():
            others = {name: position for name, position in self.coordinates.items() if name != axis}
            color = _number(others, sizes)  # the same for ranks that differ on this axis alone
            self._groups[axis] = group.split(color, key=here, axis=axis)

    def __getitem__(self, axis: str) -> Group:
        if axis not in self._groups:
            raise UsageError(NO_SUCH_AXIS(axis=axis, axes=listed(self.sizes)))
        return self._groups[axis]

    def __getattr__(self, axis: str) -> Group:
        groups = self.__dict__.get("_groups", {})
        if axis not in groups:
            raise AttributeError(NO_SUCH_AXIS(axis=axis, axes=listed(groups)))
        group: Group = groups[axis]
        return group

    def __repr__(self) -> str:
        axes = ", ".join(f"{axis} {self.coordinates[axis]} of {size}" for axis, size in self.sizes.items())
        return f"<Mesh: {axes}>"


def mesh(group: Any = None, **sizes: int) -> Mesh:
    """Arrange the ranks of a group along named axes: ``mesh(comm, dp=2, tp=2)``. All its ranks call this.

    ``group``: a communicator, a torch process group, or None for torch's default group.
    ``sizes``: the number of ranks on each axis, by name. One of them may be -1: all remaining ranks. Each axis gets
    separate groups.
    """
    ranks = group_of(group)
    for axis, size in sizes.items():
        if type(size) is not int or (size < 1 and size != -1):
            raise UsageError(WRONG_AXIS_SIZE(axis=axis, size=size))
        if axis in Mesh.__dict__ or axis in ("sizes", "coordinates") or axis.startswith("_"):
            raise UsageError(RESERVED_AXIS_NAME(axis=axis))
    if not sizes:
        raise UsageError(NO_AXES())
    open_axes = [axis for axis, size in sizes.items() if size == -1]
    if len(open_axes) > 1:
        raise UsageError(SEVERAL_OPEN_AXES(axes=listed(open_axes)))
    known = prod(size for size in sizes.values() if size != -1)
    if open_axes and ranks.size % known == 0:
        sizes = sizes | {open_axes[0]: ranks.size // known}
    if prod(sizes.values()) != ranks.size:
        product = " × ".join(f"{axis}={size}" for axis, size in sizes.items())
        needed = MULTIPLE_OF(count=known) if open_axes else known
        raise UsageError(WRONG_MESH_SIZE(product=product, needed=needed, size=ranks.size))
    return Mesh(ranks, sizes)


def host_mesh(group: Group) -> Mesh:
    """Arrange the ranks by host: those of a host on the axis ``shard``, one of each host on the axis ``replica``."""
    if group.hosts is None:
        raise UsageError(HOSTS_NOT_KNOWN())
    counts = [len(ranks) for ranks in group.hosts]
    if len(set(counts)) > 1:
        raise UsageError(UNEQUAL_HOSTS(counts=listed(map(str, counts))))
    return Mesh(group, {"replica": len(counts), "shard": counts[0]})


def hybrid_groups(group: Any, replicate: Any) -> tuple[Group, Group | None]:
    """Return the ranks that share a model, and those that hold the same shard; None: there are no replicas.

    ``replicate`` is the group of the replicas, None, or "hosts".
    """
    ranks = group_of(group)
    if not isinstance(replicate, str):
        return ranks, None if replicate is None else group_of(replicate)
    if replicate != "hosts":
        raise UsageError(WRONG_REPLICATE(replicate=replicate))
    if ranks.hosts is not None and len(ranks.hosts) == 1:
        return ranks, None
    hosts = host_mesh(ranks)
    return hosts["shard"], hosts["replica"]


def _position(group: Group) -> int:
    """Return the position of this rank if all ranks are listed host by host."""
    if group.hosts is None:
        return group.rank
    return [rank for ranks in group.hosts for rank in ranks].index(group.rank)


def _coordinates(position: int, sizes: dict[str, int]) -> dict[str, int]:
    coordinates = {}
    for axis in reversed(sizes):
        position, coordinates[axis] = divmod(position, sizes[axis])
    return {axis: coordinates[axis] for axis in sizes}


def _number(coordinates: dict[str, int], sizes: dict[str, int]) -> int:
    number = 0
    for axis, position in coordinates.items():
        number = number * sizes[axis] + position
    return number
