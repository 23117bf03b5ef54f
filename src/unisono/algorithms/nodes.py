"""Nodes: links inside a node are fast, links between nodes are slow.

*Node*: a group of consecutive ranks. ``node=4`` means four ranks in each (the last node has the rest);
``node=(3, 5, 2)`` lists the number of ranks of each node.
"""

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from unisono.algorithms import messages
from unisono.errors import UsageError

Node = int | Sequence[int]


def nodes_of(size: int, node: Node) -> tuple[range, ...]:
    """Return the ranks of every node; raise UsageError unless the nodes have ``size`` ranks in all."""
    if not isinstance(node, int) and not (
        isinstance(node, Sequence) and node and all(isinstance(ranks, int) for ranks in node)
    ):
        raise UsageError(messages.BAD_NODE(node=repr(node)))
    return _nodes_of(size, tuple(node) if isinstance(node, list) else node)


@lru_cache(maxsize=16)  # the same for every rank of a schedule
def _nodes_of(size: int, node: int | tuple[int, ...]) -> tuple[range, ...]:
    if isinstance(node, int):
        if node < 1:
            raise UsageError(messages.BAD_NODE(node=node))
        return tuple(range(first, min(first + node, size)) for first in range(0, size, node))
    if sum(node) != size or min(node) < 1:
        raise UsageError(messages.BAD_NODES(node=node, total=sum(node), size=size))
    return tuple(range(end - ranks, end) for end, ranks in zip(accumulate(node), node, strict=True))


def home_of(rank: int, nodes: Sequence[range]) -> int:
    """Return the index of the node of a rank."""
    return bisect_right(nodes, rank, key=lambda ranks: ranks.start) - 1
