"""Pairwise exchange: in each step everyone sends to one rank and receives from one rank."""

from unisono.algorithms.declaration import Steps, algorithm, one_per_rank
from unisono.collectives import all_to_all
from unisono.schedule import copy, recv, send


@algorithm(all_to_all, chunks=one_per_rank)
def pairwise_all_to_all(rank: int, size: int) -> Steps:
    """In step d swap blocks with the ranks d to the right and d to the left (Thakur et al., 2005)."""
    inp, out = all_to_all.slots(size)
    yield copy(inp[rank], to=out[rank])
    for distance in range(1, size):
        right, left = (rank + distance) % size, (rank - distance) % size
        yield send(inp[right], dst=right), recv(out[left], src=left)
