"""Where ranks live: inside a node links are fast, between nodes they are slow.

*Node*: a run of consecutive ranks. ``node=4`` means four ranks in each (the last node has what is left);
``node=(3, 5, 2)`` says how many each one has.
"""

from collections.abc import Sequence
from functools import lru_cache

from unisono.errors import UsageError

Node = int | Sequence[int]


def nodes_of(size: int, node: Node) -> tuple[range, ...]:
    """Return the ranks of every node, and make sure that the nodes have ``size`` ranks in all."""
    return _nodes_of(size, node if isinstance(node, int) else tuple(node))


@lru_cache(maxsize=16)  # every rank of a schedule asks for the same
def _nodes_of(size: int, node: int | tuple[int, ...]) -> tuple[range, ...]:
    if isinstance(node, int):
        if node < 1:
            raise UsageError(f"hierarchical: node={node}; expected the number of ranks in a node, 1 or more")
        return tuple(range(first, min(first + node, size)) for first in range(0, size, node))
    if sum(node) != size or min(node) < 1:
        raise UsageError(
            f"hierarchical: node={node} has {sum(node)} ranks in all, with {size} ranks; "
            f"expected numbers of 1 or more that add up to {size}"
        )
    ends = [sum(node[: index + 1]) for index in range(len(node))]
    return tuple(range(end - ranks, end) for end, ranks in zip(ends, node, strict=True))


def home_of(rank: int, nodes: Sequence[range]) -> int:
    """Return the index of the node that a rank lives in."""
    return next(index for index, ranks in enumerate(nodes) if rank in ranks)
