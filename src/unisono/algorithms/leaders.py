"""Collectives in which one rank communicates for its node (see nodes.py).

*Leader*: the rank that exchanges data with other nodes: the root in its node, the first rank in every other. Each
byte then enters or leaves a node as rarely as possible, and every node sends few messages.
"""

from unisono.algorithms.declaration import Steps, algorithm
from unisono.algorithms.levels import Name, amounts, leaders_of, levels
from unisono.algorithms.nodes import Node, home_of
from unisono.collectives import all_reduce, barrier, broadcast, reduce


@algorithm(broadcast, **amounts((broadcast,), broadcast))
def hierarchical_broadcast(
    rank: int, size: int, root: int = 0, node: Node = 4, inner: Name = "naive", outer: Name = "tree"
) -> Steps:
    """Broadcast to the leader of each node, then inside the node: the vector enters a node once.

    (MagPIe: Kielmann et al., 1999.)
    """
    cut = levels(size, node, inner, (broadcast,), outer, broadcast)
    leaders, home = leaders_of(cut.nodes, root), home_of(rank, cut.nodes)
    yield from cut.run(cut.outer, rank, leaders, root)
    yield from cut.run(cut.inner[0], rank, cut.nodes[home], leaders[home])


@algorithm(reduce, **amounts((reduce,), reduce))
def hierarchical_reduce(
    rank: int, size: int, root: int = 0, node: Node = 4, inner: Name = "naive", outer: Name = "tree"
) -> Steps:
    """Reduce inside the node, then between the leaders: one sum leaves a node (MagPIe: Kielmann et al., 1999)."""
    cut = levels(size, node, inner, (reduce,), outer, reduce)
    leaders, home = leaders_of(cut.nodes, root), home_of(rank, cut.nodes)
    yield from cut.run(cut.inner[0], rank, cut.nodes[home], leaders[home])
    yield from cut.run(cut.outer, rank, leaders, root)


@algorithm(all_reduce, **amounts((reduce, broadcast), all_reduce))
def leaders(rank: int, size: int, node: Node = 4, inner: Name = "naive", outer: Name = "recursive_doubling") -> Steps:
    """Reduce inside the node, all-reduce between the leaders, broadcast inside: few messages between nodes.

    (MagPIe: Kielmann et al., 1999.)
    """
    cut = levels(size, node, inner, (reduce, broadcast), outer, all_reduce)
    ranks = cut.nodes[home_of(rank, cut.nodes)]
    yield from cut.run(cut.inner[0], rank, ranks, ranks[0])
    yield from cut.run(cut.outer, rank, cut.first_ranks)
    yield from cut.run(cut.inner[1], rank, ranks, ranks[0])


@algorithm(barrier, **amounts((reduce, broadcast), barrier))
def hierarchical_barrier(
    rank: int, size: int, node: Node = 4, inner: Name = "naive", outer: Name = "dissemination"
) -> Steps:
    """Count arrivals inside the node, synchronise the leaders, then release the node.

    (MagPIe: Kielmann et al., 1999.)
    """
    cut = levels(size, node, inner, (reduce, broadcast), outer, barrier)
    ranks = cut.nodes[home_of(rank, cut.nodes)]
    yield from cut.run(cut.inner[0], rank, ranks, ranks[0])
    yield from cut.run(cut.outer, rank, cut.first_ranks)
    yield from cut.run(cut.inner[1], rank, ranks, ranks[0])
