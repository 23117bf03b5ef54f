"""A mesh: ranks in rows and columns, and further directions, so that strategies can be combined.

::

    mesh(group, dp=2, tp=3)            tp ───>
                                  dp   0  1  2      the tp group of rank 4: 3, 4, 5
                                  │    3  4  5      the dp group of rank 4: 1, 4
                                  v

The last axis has the nearest ranks: put there what talks the most.
"""

from __future__ import annotations

from math import prod
from typing import Any

from unisono.errors import UsageError
from unisono.parallel.group import Group, group_of


class Mesh:
    """The groups that this rank belongs to: one for each axis, as ``mesh.dp`` or ``mesh["dp"]``.

    ``sizes`` and ``coordinates`` say how long each axis is, and where this rank is on it.
    """

    def __init__(self, group: Group, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        self.coordinates = _coordinates(group.rank, sizes)
        self._groups: dict[str, Group] = {}
        for axis, here in self.coordinates.items():
            others = {name: place for name, place in self.coordinates.items() if name != axis}
            color = _number(others, sizes)  # ranks that differ on this axis alone have the same
            self._groups[axis] = group.split(color, key=here, axis=axis)

    def __getitem__(self, axis: str) -> Group:
        if axis not in self._groups:
            raise UsageError(f"mesh: there is no axis {axis!r}; expected one of {', '.join(self.sizes)}")
        return self._groups[axis]

    def __getattr__(self, axis: str) -> Group:
        groups = self.__dict__.get("_groups", {})
        if axis not in groups:
            raise AttributeError(f"mesh: there is no axis {axis!r}; expected one of {', '.join(groups)}")
        found: Group = groups[axis]
        return found

    def __repr__(self) -> str:
        axes = ", ".join(f"{axis} {self.coordinates[axis]} of {size}" for axis, size in self.sizes.items())
        return f"<Mesh: {axes}>"


def mesh(group: Any = None, **sizes: int) -> Mesh:
    """Arrange the ranks of a group along named axes: ``mesh(comm, dp=2, tp=2)``. All its ranks call this.

    One size may be -1: as many as there are ranks for. Each axis gets groups of its own.
    """
    ranks = group_of(group)
    for axis, size in sizes.items():
        if type(size) is not int or (size < 1 and size != -1):
            raise UsageError(f"mesh: {axis}={size!r}; expected a number of ranks, or -1 for as many as are left")
        if axis in Mesh.__dict__ or axis in ("sizes", "coordinates") or axis.startswith("_"):
            raise UsageError(f"mesh: an axis cannot be called {axis!r}; choose another name")
    if not sizes:
        raise UsageError("mesh: no axes; expected some, such as mesh(group, dp=2, tp=2)")
    open_axes = [axis for axis, size in sizes.items() if size == -1]
    if len(open_axes) > 1:
        raise UsageError(f"mesh: {' and '.join(open_axes)} are -1; expected one at most")
    known = prod(size for size in sizes.values() if size != -1)
    if open_axes and ranks.size % known == 0:
        sizes = sizes | {open_axes[0]: ranks.size // known}
    if prod(sizes.values()) != ranks.size:
        product = " × ".join(f"{axis}={size}" for axis, size in sizes.items())
        wanted = f"a multiple of {known}" if open_axes else f"{known}"
        raise UsageError(
            f"mesh: {product} needs {wanted} ranks, the group has {ranks.size}; choose sizes whose product is "
            f"{ranks.size}"
        )
    return Mesh(ranks, sizes)


def _coordinates(rank: int, sizes: dict[str, int]) -> dict[str, int]:
    found = {}
    for axis in reversed(sizes):
        rank, found[axis] = divmod(rank, sizes[axis])
    return {axis: found[axis] for axis in sizes}


def _number(coordinates: dict[str, int], sizes: dict[str, int]) -> int:
    number = 0
    for axis, place in coordinates.items():
        number = number * sizes[axis] + place
    return number
