"""The tree family: data spreads from a root, or is collected on it, and the number of ranks involved doubles.

The fewest steps possible, but the ranks near the root carry the whole vector: for short vectors.
"""

from unisono.algorithms.arithmetic import powers_of_two_below
from unisono.algorithms.declaration import Steps, algorithm, one, one_per_rank
from unisono.collectives import all_reduce, barrier, broadcast, gather, reduce, scatter
from unisono.schedule import backwards, recv, send


@algorithm(broadcast, chunks=one)
def tree_broadcast(rank: int, size: int, root: int = 0) -> Steps:
    """In each step, every rank that has the vector sends it to one that does not (Johnsson and Ho, 1989)."""
    me = (rank - root) % size
    for span in powers_of_two_below(size):
        if me < span and me + span < size:
            yield send(0, dst=(rank + span) % size)
        elif span <= me < 2 * span:
            yield recv(0, src=(rank - span) % size)


@algorithm(reduce, chunks=one)
def tree_reduce(rank: int, size: int, root: int = 0) -> Steps:
    """The tree broadcast run backwards: half of the remaining ranks send their sums (Johnsson and Ho, 1989)."""
    yield from backwards(tree_broadcast(rank, size, root))


@algorithm(all_reduce, chunks=one)
def tree(rank: int, size: int) -> Steps:
    """Add everything up on rank 0, then broadcast the sum (binomial tree: Johnsson and Ho, 1989)."""
    yield from tree_reduce(rank, size)
    yield from tree_broadcast(rank, size)


@algorithm(scatter, chunks=one_per_rank)
def tree_scatter(rank: int, size: int, root: int = 0) -> Steps:
    """A rank with several blocks sends half of them on, until each rank has its own (Johnsson and Ho, 1989)."""
    me = (rank - root) % size
    for span in reversed(powers_of_two_below(size)):
        if me % (2 * span) == 0 and me + span < size:
            yield send(blocks_of(me + span, span, size, root), dst=(rank + span) % size)
        elif me % (2 * span) == span:
            yield recv(blocks_of(me, span, size, root), src=(rank - span) % size)


def blocks_of(me: int, span: int, size: int, root: int) -> list[int]:
    """Return the blocks of ``span`` consecutive ranks from ``me`` on, counted from the root."""
    return [(root + peer) % size for peer in range(me, min(me + span, size))]


@algorithm(gather, chunks=one_per_rank)
def tree_gather(rank: int, size: int, root: int = 0) -> Steps:
    """The tree scatter run backwards: blocks are collected in growing bundles (Johnsson and Ho, 1989)."""
    yield from backwards(tree_scatter(rank, size, root), add=False)


@algorithm(barrier, chunks=one)
def tree_barrier(rank: int, size: int) -> Steps:
    """Count arrivals up the tree to rank 0, then release all ranks down it (Mellor-Crummey and Scott, 1991)."""
    yield from tree(rank, size)
