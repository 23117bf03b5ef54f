"""Rooted collectives for long vectors: the vector is cut, and every rank carries a part of it."""

from unisono.algorithms.declaration import Steps, algorithm, one_per_rank
from unisono.algorithms.ring import ring_all_gather, ring_reduce_scatter
from unisono.algorithms.tree import tree_gather, tree_scatter
from unisono.collectives import broadcast, reduce


@algorithm(broadcast, chunks=one_per_rank)
def scatter_all_gather_broadcast(rank: int, size: int, root: int = 0) -> Steps:
    """Scatter the vector, then share the parts around the ring (Barnett et al., 1994)."""
    yield from tree_scatter(rank, size, root)
    yield from ring_all_gather(rank, size)


@algorithm(reduce, chunks=one_per_rank)
def reduce_scatter_gather_reduce(rank: int, size: int, root: int = 0) -> Steps:
    """Let each rank sum one part of the vector, then gather the parts on the root (Rabenseifner, 2004)."""
    yield from ring_reduce_scatter(rank, size)
    yield from tree_gather(rank, size, root)
