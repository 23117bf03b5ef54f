"""Blocks that cross between nodes in bundles, one for each node: gather and scatter with nodes (see nodes.py)."""

from unisono.algorithms.declaration import Steps, algorithm, one_per_rank
from unisono.algorithms.levels import Name, leaders_of, level, per_rank
from unisono.algorithms.nodes import Node, home_of, nodes_of
from unisono.collectives import gather, scatter


@algorithm(gather, chunks=one_per_rank)
def hierarchical_gather(
    rank: int, size: int, root: int = 0, node: Node = 4, inner: Name = "naive", outer: Name = "naive"
) -> Steps:
    """Gather the blocks of the node on its leader, which sends them to the root as one bundle.

    (MagPIe: Kielmann et al., 1999.)
    """
    nodes = nodes_of(size, node)
    leaders, home = leaders_of(nodes, root), home_of(rank, nodes)
    ranks, leader = nodes[home], leaders[home]
    yield from level(per_rank(inner, gather, len(ranks)), rank, ranks, ranks, leader)
    yield from level(per_rank(outer, gather, len(nodes)), rank, leaders, nodes, root)


@algorithm(scatter, chunks=one_per_rank)
def hierarchical_scatter(
    rank: int, size: int, root: int = 0, node: Node = 4, inner: Name = "naive", outer: Name = "naive"
) -> Steps:
    """Send each leader the blocks of its node as one bundle, which it scatters (MagPIe: Kielmann et al., 1999)."""
    nodes = nodes_of(size, node)
    leaders, home = leaders_of(nodes, root), home_of(rank, nodes)
    ranks, leader = nodes[home], leaders[home]
    yield from level(per_rank(outer, scatter, len(nodes)), rank, leaders, nodes, root)
    yield from level(per_rank(inner, scatter, len(ranks)), rank, ranks, ranks, leader)
