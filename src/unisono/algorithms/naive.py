"""The naive family: every rank communicates with every other, or with the root.

Many messages and no optimization: the reference against which the others are measured.
"""

from unisono.algorithms.declaration import Steps, algorithm, one, one_per_rank
from unisono.collectives import (
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)
from unisono.schedule import combine, copy, recv, recv_reduce, send


def others(rank: int, size: int) -> list[int]:
    """Return all other ranks, beginning with the right-hand neighbour, so that no rank receives from all at once."""
    return [(rank + distance) % size for distance in range(1, size)]


@algorithm(broadcast, chunks=one)
def naive_broadcast(rank: int, size: int, root: int = 0) -> Steps:
    """The root sends the whole vector to each other rank in turn (MPI's linear algorithm)."""
    if rank == root:
        for peer in others(rank, size):
            yield send(0, dst=peer)
    else:
        yield recv(0, src=root)


@algorithm(scatter, chunks=one_per_rank)
def naive_scatter(rank: int, size: int, root: int = 0) -> Steps:
    """The root sends each other rank its block in turn (MPI's linear algorithm)."""
    if rank == root:
        for peer in others(rank, size):
            yield send(peer, dst=peer)
    else:
        yield recv(rank, src=root)


@algorithm(gather, chunks=one_per_rank)
def naive_gather(rank: int, size: int, root: int = 0) -> Steps:
    """Each other rank sends its block directly to the root (MPI's linear algorithm)."""
    if rank == root:
        for peer in others(rank, size):
            yield recv(peer, src=peer)
    else:
        yield send(rank, dst=root)


@algorithm(reduce, chunks=one)
def naive_reduce(rank: int, size: int, root: int = 0) -> Steps:
    """Each other rank sends its vector to the root, which adds them in turn (MPI's linear algorithm)."""
    if rank == root:
        for peer in others(rank, size):
            yield recv_reduce(0, src=peer)
    else:
        yield send(0, dst=root)


@algorithm(all_gather, chunks=one_per_rank)
def naive_all_gather(rank: int, size: int) -> Steps:
    """Each rank sends its block directly to every other rank (MPI's linear algorithm)."""
    peers = others(rank, size)
    yield *(send(rank, dst=peer) for peer in peers), *(recv(peer, src=peer) for peer in reversed(peers))


@algorithm(reduce_scatter, chunks=one_per_rank)
def naive_reduce_scatter(rank: int, size: int) -> Steps:
    """Each rank sends each chunk directly to its owner, which adds them up (MPI's linear algorithm)."""
    peers = others(rank, size)
    yield *(send(peer, dst=peer) for peer in peers), *(recv_reduce(rank, src=peer) for peer in reversed(peers))


@algorithm(all_reduce, chunks=one, scratch=lambda size: size - 1)
def naive(rank: int, size: int) -> Steps:
    """Each rank sends its vector to all others and adds in rank order, so that all get the same bits (textbook)."""
    peers = others(rank, size)
    slot_of = [
        (peer - rank) % size for peer in range(size)
    ]  # of each rank's data: its distance; 0 is this rank's own
    yield (
        *(send(0, dst=peer) for peer in peers),
        *(recv(distance, src=peers[distance - 1]) for distance in range(size - 1, 0, -1)),
    )
    for peer in range(1, size):
        yield combine(slot_of[peer], into=slot_of[0])
    if slot_of[0] != 0:
        yield copy(slot_of[0], to=0)


@algorithm(all_reduce, chunks=one_per_rank)
def direct(rank: int, size: int) -> Steps:
    """Each rank receives one chunk from every other rank, adds, and sends the sum to every other rank (textbook)."""
    yield from naive_reduce_scatter(rank, size)
    yield from naive_all_gather(rank, size)


@algorithm(all_to_all, chunks=one_per_rank)
def naive_all_to_all(rank: int, size: int) -> Steps:
    """Each rank sends each block directly to its destination, all at once (MPI's linear algorithm)."""
    inp, out = all_to_all.slots(size)
    peers = others(rank, size)
    yield (
        copy(inp[rank], to=out[rank]),
        *(send(inp[peer], dst=peer) for peer in peers),
        *(recv(out[peer], src=peer) for peer in reversed(peers)),
    )
