"""The recursive family: partners at distance 1, 2, 4, ...; the data held doubles with each exchange.

Written for powers of two, and folded for the sizes between them (see folding.py).
"""

from unisono.algorithms.arithmetic import largest_power_of_two, powers_of_two_below
from unisono.algorithms.declaration import Steps, algorithm, one, one_per_rank
from unisono.algorithms.folding import folded_all_gather, folded_all_reduce
from unisono.collectives import all_gather, all_reduce, reduce_scatter
from unisono.schedule import backwards, recv, recv_reduce, send


@algorithm(all_gather, chunks=one_per_rank)
def recursive_doubling_all_gather(rank: int, size: int) -> Steps:
    """Exchange all blocks held so far with the partner at distance 1, 2, 4, ... (Thakur et al., 2005)."""
    yield from folded_all_gather(doubling_blocks, rank, size, core=largest_power_of_two(size))


def doubling_blocks(rank: int, size: int) -> Steps:
    """Recursive doubling itself, for a power of two."""
    for distance in powers_of_two_below(size):
        partner = rank ^ distance
        mine, theirs = rank // distance * distance, partner // distance * distance
        yield (
            send(range(mine, mine + distance), dst=partner),
            recv(range(theirs, theirs + distance), src=partner),
        )


@algorithm(reduce_scatter, chunks=one_per_rank)
def recursive_halving_reduce_scatter(rank: int, size: int) -> Steps:
    """Recursive doubling run backwards: send away half of the chunks, add the other half (Thakur et al., 2005)."""
    yield from backwards(recursive_doubling_all_gather(rank, size))


@algorithm(all_reduce, chunks=one)
def recursive_doubling(rank: int, size: int) -> Steps:
    """Exchange partial sums with the partner at distance 1, 2, 4, ... and add (Thakur et al., 2005)."""
    yield from folded_all_reduce(doubling_sums, rank, size, core=largest_power_of_two(size), chunks=1)


def doubling_sums(rank: int, size: int) -> Steps:
    """Recursive doubling itself, for a power of two."""
    for distance in powers_of_two_below(size):
        yield send(0, dst=rank ^ distance), recv_reduce(0, src=rank ^ distance)


@algorithm(all_reduce, chunks=largest_power_of_two)
def rabenseifner(rank: int, size: int) -> Steps:
    """Recursive halving sums one chunk on each rank; recursive doubling shares the sums (Rabenseifner, 2004)."""
    core = largest_power_of_two(size)
    yield from folded_all_reduce(halving_then_doubling, rank, size, core, chunks=core)


def halving_then_doubling(rank: int, size: int) -> Steps:
    """Rabenseifner itself, for a power of two."""
    yield from recursive_halving_reduce_scatter(rank, size)
    yield from recursive_doubling_all_gather(rank, size)
