"""Nodes: links inside a node are fast, links between nodes are slow.

*Node*: a group of ranks. ``node=4`` means four consecutive ranks in each (the last node has the rest);
``node=(3, 5, 2)`` lists the number of consecutive ranks of each node; ``node=((0, 2), (1, 3))`` lists the ranks of
each node, which need not be consecutive.
"""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

from unisono.algorithms import messages
from unisono.errors import UsageError
from unisono.schedule import Schedule
from unisono.schedule.ops import SEND, count
from unisono.schedule.varying import Table

Node = int | Sequence[int] | Sequence[Sequence[int]]


class Nodes(Table[Sequence[int]]):
    """The ranks of every node."""

    @cached_property
    def homes(self) -> Table[int]:
        """The index of the node of each rank."""
        home = {rank: index for index, ranks in enumerate(self) for rank in ranks}
        return Table(home[rank] for rank in range(len(home)))


def nodes_of(size: int, node: Node) -> Nodes:
    """Return the ranks of every node; raise UsageError unless every one of ``size`` ranks is in one node."""
    return _nodes_of(size, hashable(node))


def hashable(node: Node) -> Any:
    """Return the option as a number or as tuples; raise UsageError if it is neither numbers nor lists of ranks."""
    if isinstance(node, int):
        return node
    if isinstance(node, Sequence) and node:
        if all(isinstance(each, int) for each in node):
            return tuple(node)
        if all(isinstance(each, Sequence) and all(isinstance(rank, int) for rank in each) for each in node):
            return tuple(tuple(each) for each in node if isinstance(each, Sequence))
    raise UsageError(messages.BAD_NODE(node=repr(node)))


@lru_cache(maxsize=16)  # the same for every rank of a schedule
def _nodes_of(size: int, node: Any) -> Nodes:
    if isinstance(node, int):
        if node < 1:
            raise UsageError(messages.BAD_NODE(node=node))
        return Nodes(range(first, min(first + node, size)) for first in range(0, size, node))
    if isinstance(node[0], tuple):
        if not all(node) or sorted(rank for ranks in node for rank in ranks) != list(range(size)):
            raise UsageError(messages.BAD_RANKS_OF_NODES(node=node, size=size, last=size - 1))
        return Nodes(Table(ranks) for ranks in node)
    if sum(node) != size or min(node) < 1:
        raise UsageError(messages.BAD_NODES(node=node, total=sum(node), size=size))
    return Nodes(range(end - ranks, end) for end, ranks in zip(accumulate(node), node, strict=True))


def home_of(rank: int, nodes: Nodes) -> int:
    """Return the index of the node of a rank."""
    return nodes.homes[rank]  # type: ignore[no-any-return]


def crossing_part(schedule: Schedule, nodes: Sequence[Sequence[int]]) -> Fraction:
    """Return the part of the vector that crosses the link of the busiest node, in its busiest direction."""
    home = {rank: index for index, ranks in enumerate(nodes) for rank in ranks}
    leaves, enters = Counter[int](), Counter[int]()
    for rank in range(schedule.size):
        for step in schedule.program(rank):
            for op in step:
                if op.kind == SEND and home[rank] != home[op.other]:  # type: ignore[index]
                    leaves[home[rank]] += count(op.chunks)
                    enters[home[op.other]] += count(op.chunks)  # type: ignore[index]
    return Fraction(max([0, *leaves.values(), *enters.values()]), schedule.chunks)
