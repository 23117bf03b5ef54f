"""The chain family: a line of ranks that starts at the root, and a vector in pieces that flow along it.

While one piece goes from the first rank to the second, the piece before it goes from the second to the third: with
many pieces every link is busy, and no rank sends or receives the vector more than once.
"""

from unisono.algorithms.declaration import Steps, algorithm
from unisono.collectives import broadcast, reduce
from unisono.schedule import backwards, recv, send


@algorithm(broadcast, chunks=lambda size, pieces: pieces)
def chain_broadcast(rank: int, size: int, root: int = 0, pieces: int = 8) -> Steps:
    """Each rank passes a piece on while it receives the next one (Watts and van de Geijn, 1995)."""
    first, last = rank == root, (rank + 1) % size == root
    for piece in range(pieces + 1):
        step = []
        if not last and piece > 0:
            step.append(send(piece - 1, dst=(rank + 1) % size))
        if not first and piece < pieces:
            step.append(recv(piece, src=(rank - 1) % size))
        yield tuple(step)


@algorithm(reduce, chunks=lambda size, pieces: pieces)
def chain_reduce(rank: int, size: int, root: int = 0, pieces: int = 8) -> Steps:
    """The chain broadcast run backwards: each piece gains an addend per hop (Watts and van de Geijn, 1995)."""
    yield from backwards(chain_broadcast(rank, size, root, pieces))
