"""Neighbour exchange: like a ring, but with two blocks at a time, and so half the steps."""

from unisono.algorithms.declaration import Steps, algorithm, one_per_rank
from unisono.algorithms.folding import folded_all_gather
from unisono.collectives import all_gather
from unisono.schedule import recv, send


@algorithm(all_gather, chunks=one_per_rank)
def neighbour_exchange_all_gather(rank: int, size: int) -> Steps:
    """Swap with the left and right neighbours in turn, passing on the blocks last received from the other one.

    (Chen et al., 2005.)
    """
    yield from folded_all_gather(swap_pairs, rank, size, core=max(1, size - size % 2))


def swap_pairs(rank: int, size: int) -> Steps:
    """Neighbour exchange itself, for an even size (or 1, where there is nothing to do).

    Ranks 2k and 2k+1 are pair k; after the first step both hold the blocks of their pair. From then on an even
    rank receives the pairs to its left when it turns left and those to its right when it turns right: pair
    k-1, k+1, k-2, k+2, ...; an odd rank the other way around.
    """
    pair, outwards = rank // 2, (-1 if rank % 2 == 0 else 1)  # the side of the other pair
    if size > 1:
        yield send(rank, dst=rank ^ 1), recv(rank ^ 1, src=rank ^ 1)
    latest = pair
    for step in range(1, size // 2):
        turn = outwards if step % 2 else -outwards
        peer, coming = (rank + turn) % size, (pair + turn * ((step + 1) // 2)) % (size // 2)
        yield send(blocks_of(latest), dst=peer), recv(blocks_of(coming), src=peer)
        latest = coming


def blocks_of(pair: int) -> range:
    """Return the two blocks of a pair of ranks."""
    return range(2 * pair, 2 * pair + 2)
