"""Blocks that cross between nodes in columns: all_gather and reduce_scatter with nodes (see nodes.py).

*Column c*: the c-th rank of every node. The block of each of these ranks crosses between the nodes inside its column,
so all ranks of a node share the work, and each block enters each other node once. In a node with fewer ranks, the
ranks take further columns in turn; such a column has no block of that node.
"""

from unisono.algorithms.declaration import Algorithm, Steps, algorithm, one_per_rank
from unisono.algorithms.levels import Column, Name, node_columns, per_rank
from unisono.algorithms.nodes import Node, Nodes, home_of, nodes_of
from unisono.collectives import all_gather, reduce_scatter
from unisono.schedule import mapped


def across(outer: Algorithm, rank: int, home: int, columns: list[Column]) -> Steps:
    """Run the outer algorithm in every column of this rank."""
    for column in columns:
        if column.ranks[home] == rank:
            yield from mapped(outer(home, len(column.ranks)), ranks=column.ranks, chunks=column.blocks)


def inside(inner: Algorithm, rank: int, home: int, nodes: Nodes, columns: list[Column]) -> Steps:
    """Run the inner algorithm in the node of this rank; the chunk of a rank is all blocks of its columns."""
    ranks = nodes[home]
    chunks = [
        [block for column in columns if column.ranks[home] == peer for blocks in column.blocks for block in blocks]
        for peer in ranks
    ]
    yield from mapped(inner(ranks.index(rank), len(ranks)), ranks=ranks, chunks=chunks)


@algorithm(all_gather, chunks=one_per_rank)
def hierarchical_all_gather(
    rank: int, size: int, node: Node = 4, inner: Name = "ring", outer: Name = "ring"
) -> Steps:
    """All-gather between nodes, in columns, then inside the node: each block enters a node once (Träff, 2006)."""
    nodes = nodes_of(size, node)
    columns, home = node_columns(nodes), home_of(rank, nodes)
    yield from across(per_rank(outer, all_gather, len(nodes)), rank, home, columns)
    yield from inside(per_rank(inner, all_gather, len(nodes[home])), rank, home, nodes, columns)


@algorithm(reduce_scatter, chunks=one_per_rank)
def hierarchical_reduce_scatter(
    rank: int, size: int, node: Node = 4, inner: Name = "ring", outer: Name = "ring"
) -> Steps:
    """Reduce-scatter inside the node, then between nodes, in columns: nodes exchange sums only.

    (BlueConnect: Cho et al., 2019.)
    """
    nodes = nodes_of(size, node)
    columns, home = node_columns(nodes), home_of(rank, nodes)
    yield from inside(per_rank(inner, reduce_scatter, len(nodes[home])), rank, home, nodes, columns)
    yield from across(per_rank(outer, reduce_scatter, len(nodes)), rank, home, columns)
