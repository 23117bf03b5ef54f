"""The tree family: data spreads from a root, or collects into it, and the number of ranks involved doubles.

The fewest steps that are possible, but the ranks near the root carry the whole vector: for short vectors.
"""

from unisono.algorithms.declaration import Steps, algorithm, one, one_per_rank
from unisono.collectives import all_reduce, barrier, broadcast, gather, reduce, scatter
from unisono.schedule import backwards, recv, send


def spans(size: int) -> list[int]:
    """Return the powers of two below ``size``: 1, 2, 4, ..."""
    return [1 << bit for bit in range((size - 1).bit_length())]


@algorithm(broadcast, chunks=one)
def tree_broadcast(rank: int, size: int, root: int = 0) -> Steps:
    """Whoever has the vector gives it to someone who has not: those who have it double (Johnsson and Ho, 1989)."""
    me = (rank - root) % size
    for span in spans(size):
        if me < span and me + span < size:
            yield send(0, dst=(rank + span) % size)
        elif span <= me < 2 * span:
            yield recv(0, src=(rank - span) % size)


@algorithm(reduce, chunks=one)
def tree_reduce(rank: int, size: int, root: int = 0) -> Steps:
    """The tree broadcast run backwards: half of those left hand their sum to the rest (Johnsson and Ho, 1989)."""
    yield from backwards(tree_broadcast(rank, size, root))


@algorithm(all_reduce, chunks=one)
def tree(rank: int, size: int) -> Steps:
    """Add everything up on rank 0, then tell everyone the sum (binomial tree: Johnsson and Ho, 1989)."""
    yield from tree_reduce(rank, size)
    yield from tree_broadcast(rank, size)


@algorithm(scatter, chunks=one_per_rank)
def tree_scatter(rank: int, size: int, root: int = 0) -> Steps:
    """Whoever holds blocks of several ranks hands half of them on, until each has its own (Johnsson and Ho, 1989)."""
    me = (rank - root) % size
    for span in reversed(spans(size)):
        if me % (2 * span) == 0 and me + span < size:
            yield send(blocks_of(me + span, span, size, root), dst=(rank + span) % size)
        elif me % (2 * span) == span:
            yield recv(blocks_of(me, span, size, root), src=(rank - span) % size)


def blocks_of(me: int, span: int, size: int, root: int) -> list[int]:
    """Return the blocks of ``span`` ranks in a row, counted from the root, from ``me`` on."""
    return [(root + peer) % size for peer in range(me, min(me + span, size))]


@algorithm(gather, chunks=one_per_rank)
def tree_gather(rank: int, size: int, root: int = 0) -> Steps:
    """The tree scatter run backwards: blocks are collected in ever larger bundles (Johnsson and Ho, 1989)."""
    yield from backwards(tree_scatter(rank, size, root), add=False)


@algorithm(barrier, chunks=one)
def tree_barrier(rank: int, size: int) -> Steps:
    """Count the arrivals up to rank 0, then open the gate down the same tree (Mellor-Crummey and Scott, 1991)."""
    yield from tree(rank, size)
