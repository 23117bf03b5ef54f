"""Wrong on purpose (docs/tour.md): right numbers, but each rank adds them in another order."""

from unisono import algorithm, one, recv_reduce, send
from unisono.collectives import all_reduce


@algorithm(all_reduce, chunks=one)
def other_bits(rank, size):
    """Everyone sends to everyone, and adds what comes in."""
    peers = [(rank + distance) % size for distance in range(1, size)]
    yield *(send(0, dst=peer) for peer in peers), *(recv_reduce(0, src=peer) for peer in peers)
