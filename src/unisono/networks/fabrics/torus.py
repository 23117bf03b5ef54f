"""A torus: each host has a link to its two neighbours in each dimension, and the rows are closed to rings.

Two dimensions, 3 x 2; the dotted links close the rings::

     ..0 --- 1 --- 2..
       |     |     |
     ..3 --- 4 --- 5..

Hosts are numbered along the first dimension first. Routing is static, in the order of the dimensions: first along
the first dimension, in the shorter direction (where both are equally long, from an even position towards higher
numbers, from an odd one towards lower numbers), then along the second, and the third.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import ceil, prod

import numpy as np

from unisono.networks import messages
from unisono.networks.links import Ids, Section


@dataclass(frozen=True)
class Torus:
    """A torus. The NIC of a host injects into all its links, so its bandwidth may be that of several links.

    Without a ``shape``, the torus is the smallest box of ``dimensions`` similar sides that has room for the hosts in
    use. ``link_bandwidth`` is that of a NIC unless it is given; each link adds ``hop_latency_s``.
    """

    shape: tuple[int, ...] | None = None
    dimensions: int = 3
    link_bandwidth: float | None = None
    hop_latency_s: float = 0.0

    @property
    def kind(self) -> str:
        """The word in a network file."""
        return "torus"

    @property
    def changes_rail(self) -> bool:
        """Messages do not change rails inside a host."""
        return False

    def most_hosts(self) -> int | None:
        """Return the number of hosts in the shape."""
        return None if self.shape is None else prod(self.shape)

    def shape_of(self, hosts: int) -> tuple[int, ...]:
        """Return the shape of a torus for a number of hosts."""
        return self.shape or _box(hosts, self.dimensions)

    def sections(self, hosts: int, nics: int, bandwidth: float) -> list[Section]:
        """Return the links of each host: towards higher and towards lower numbers, in each dimension."""
        shape = self.shape_of(hosts)

        def name(index: int) -> str:
            host, link = divmod(index, 2 * len(shape))
            return messages.TORUS_LINK(host=host, direction=f"{'+-'[link % 2]}{'xyzuvw'[link // 2]}")

        count = prod(shape) * len(shape) * 2
        return [Section(count, self.hop_latency_s, self.link_bandwidth or bandwidth, name)]

    def routes(self, hosts: int, nics: int, bandwidth: float, src: Ids, dst: Ids) -> Ids:
        """Return one link for each step from host to host."""
        shape = self.shape_of(hosts)
        strides = [prod(shape[:axis]) for axis in range(len(shape))]
        here, there = src // nics, dst // nics
        columns = []
        for axis, (side, stride) in enumerate(zip(shape, strides, strict=True)):
            position = here // stride % side
            ahead = (there // stride - position) % side
            # Where both directions are equally long, every second host takes the other one: all links carry the same.
            forwards = (2 * ahead < side) | ((2 * ahead == side) & (position % 2 == 0))
            steps = np.where(forwards, ahead, side - ahead)
            for step in range(int(steps.max(initial=0))):
                moving = step < steps
                link = (here * len(shape) + axis) * 2 + ~forwards
                columns.append(np.where(moving, link, -1))
                next_position = (position + np.where(forwards, 1, -1)) % side
                here = np.where(moving, here + (next_position - position) * stride, here)
                position = np.where(moving, next_position, position)
        return np.column_stack(columns) if columns else np.empty((len(src), 0), dtype=np.int64)


def _box(hosts: int, dimensions: int) -> tuple[int, ...]:
    """Return the smallest box that holds the hosts, among those no side of which is twice that of a cube."""
    longest = 2 * ceil(round(hosts ** (1 / dimensions), 6))
    sides = range(1, longest + 1)
    best = (longest,) * dimensions
    for others in product(sides, repeat=dimensions - 1):
        last = -(-hosts // prod(others))
        box = tuple(sorted((*others, last), reverse=True))
        if last <= longest and (prod(box), box) < (prod(best), best):
            best = box
    return best
