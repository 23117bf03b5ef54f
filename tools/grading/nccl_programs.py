"""The tree of NCCL as a Unisono program; its rings are Unisono's.

It follows the public sources of NCCL (src/graph/trees.cc, src/device/all_reduce.h): a chain inside each host, and two
binary trees between the hosts, each for half of the vector. NCCL runs one such pair for each NIC of a host; all of
them do the same at the same time, so that one is enough for a prediction.
"""

from __future__ import annotations

from unisono.algorithms.declaration import Steps, algorithm
from unisono.algorithms.double_tree import neighbours
from unisono.collectives import all_reduce
from unisono.schedule import Op, recv, recv_reduce, send

BOTH = (False, True)  # the second tree is the mirror image of the first


class View:
    """A tree as one rank sees it. ``depth`` is that of its host below the root."""

    def __init__(self, rank: int, size: int, per_host: int, mirrored: bool) -> None:
        hosts = -(-size // per_host)
        host, step = divmod(rank, per_host)
        place = hosts - 1 - host if mirrored else host
        above, under = neighbours(place, hosts)
        self.depth = _depth(place, hosts)
        self.parents, self.children = [rank - 1], [rank + 1] if step + 1 < per_host and rank + 1 < size else []
        if step == 0:
            self.parents = [_leader(place, hosts, per_host, mirrored) for place in above]
            self.children += [_leader(place, hosts, per_host, mirrored) for place in under]


def _leader(place: int, hosts: int, per_host: int, mirrored: bool) -> int:
    return (hosts - 1 - place if mirrored else place) * per_host


def _depth(place: int, hosts: int) -> int:
    depth = 0
    while above := neighbours(place, hosts)[0]:
        place, depth = above[0], depth + 1
    return depth


@algorithm(all_reduce, chunks=2, depth=2)
def chains_and_trees(rank: int, size: int, per_host: int = 1) -> Steps:
    """Sum along chains inside the hosts and along two binary trees between them, and send the sums back."""
    views = [(chunk, View(rank, size, per_host, mirrored)) for chunk, mirrored in enumerate(BOTH)]
    for chunk, view in sorted(views, key=lambda pair: -pair[1].depth):  # leaves first
        yield from _step([recv_reduce(chunk, src=child) for child in view.children])
        yield from _step([send(chunk, dst=parent) for parent in view.parents])
    for chunk, view in sorted(views, key=lambda pair: pair[1].depth):  # the root first
        yield from _step([recv(chunk, src=parent) for parent in view.parents])
        yield from _step([send(chunk, dst=child) for child in view.children])


def _step(ops: list[Op]) -> Steps:
    if ops:
        yield tuple(ops)
