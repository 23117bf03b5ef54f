"""The communication orders of Open MPI, Fujitsu MPI and libbine that no built-in algorithm has, as Unisono programs.

They follow the public sources of these libraries. Most differ from a built-in algorithm in one respect only: an Open
MPI tree posts the sends to all children at once, and "block by block" sends every block as a message.
"""

from collections.abc import Iterable

from unisono.algorithms.arithmetic import powers_of_two_below
from unisono.algorithms.declaration import Steps, algorithm, one, one_per_rank
from unisono.algorithms.doubling import recursive_halving_reduce_scatter
from unisono.algorithms.swing import swing_all_gather
from unisono.algorithms.tree import tree_gather, tree_scatter
from unisono.collectives import all_gather, broadcast, reduce, reduce_scatter, scatter
from unisono.schedule import Op, backwards, recv, recv_reduce, send


def two_pieces(size: int, pieces: int) -> int:
    """Return the number of chunks of a vector that is cut into halves, and each half into ``pieces``."""
    return 2 * pieces


def power_of_two(size: int) -> bool:
    """Return whether the size is a power of two."""
    return size & (size - 1) == 0


# Trees in which a rank sends to all its children at once.


def binomial_children(rank: int, size: int) -> list[int]:
    """Return the children of a rank in the binomial tree, the one with the largest subtree first."""
    return [rank + span for span in powers_of_two_below(size) if span > rank and rank + span < size]


def heap_children(rank: int, size: int) -> list[int]:
    """Return the children of a rank in the binary tree."""
    return [child for child in (2 * rank + 1, 2 * rank + 2) if child < size]


def knomial_children(rank: int, size: int, radix: int) -> list[int]:
    """Return the children of a rank in the k-nomial tree, the one with the largest subtree first."""
    children, span = [], 1
    while span < size and rank % (span * radix) == 0:
        children += [rank + digit * span for digit in range(1, radix) if rank + digit * span < size]
        span *= radix
    return children[::-1]


def spread(parent: int | None, children: Iterable[int], pieces: int) -> Steps:
    """Receive the vector from the parent, then send it to all children at once.

    A network card takes turns between messages that it sends at once: with several ``pieces``, so does the program.
    """
    if parent is not None:
        yield tuple(recv(piece, src=parent) for piece in range(pieces))
    sends = tuple(send(piece, dst=child) for piece in range(pieces) for child in children)
    if sends:
        yield sends


def cut_into_pieces(size: int, pieces: int) -> int:
    """Return the number of chunks of a program with the option ``pieces``."""
    return pieces


def parent_of(rank: int, size: int, radix: int) -> int | None:
    """Return the parent of a rank in the k-nomial tree."""
    span = 1
    while span < size:
        if rank % (span * radix):
            return rank - rank % (span * radix)
        span *= radix
    return None


@algorithm(broadcast, chunks=cut_into_pieces)
def binomial_at_once_broadcast(rank: int, size: int, root: int = 0, pieces: int = 1) -> Steps:
    """A binomial tree in which a rank posts the sends to all its children at once."""
    parent = rank - (1 << (rank.bit_length() - 1)) if rank else None
    yield from spread(parent, binomial_children(rank, size), pieces)


@algorithm(broadcast, chunks=cut_into_pieces)
def binary_broadcast(rank: int, size: int, root: int = 0, pieces: int = 1) -> Steps:
    """A binary tree in which a rank posts the sends to both children at once."""
    yield from spread((rank - 1) // 2 if rank else None, heap_children(rank, size), pieces)


@algorithm(broadcast, chunks=cut_into_pieces)
def knomial_broadcast(rank: int, size: int, root: int = 0, pieces: int = 1) -> Steps:
    """A tree of radix 4 in which a rank posts the sends to all its children at once."""
    yield from spread(parent_of(rank, size, 4), knomial_children(rank, size, 4), pieces)


@algorithm(broadcast, chunks=two_pieces)
def split_binary_broadcast(rank: int, size: int, root: int = 0, pieces: int = 1) -> Steps:
    """Each half of the vector descends one side of a binary tree; then ranks of the two sides swap their halves."""
    halves = range(pieces), range(pieces, 2 * pieces)
    sides = [side_of(peer) for peer in range(size)]
    left, right = ([peer for peer in range(size) if sides[peer] == half] for half in (0, 1))
    if rank == 0:
        turns = zip(*halves[: min(2, size - 1)], strict=True)
        yield tuple(send(chunk, dst=half + 1) for turn in turns for half, chunk in enumerate(turn))
    else:
        yield tuple(recv(chunk, src=(rank - 1) // 2) for chunk in halves[sides[rank]])
        children = heap_children(rank, size)
        sends = tuple(send(chunk, dst=child) for chunk in halves[sides[rank]] for child in children)
        if sends:
            yield sends
    for one_left, one_right in zip(left, right, strict=False):
        if rank == one_left:
            yield send(halves[0], dst=one_right), recv(halves[1], src=one_right)
        elif rank == one_right:
            yield send(halves[1], dst=one_left), recv(halves[0], src=one_left)
    for alone in left[len(right) :]:
        if rank == 0:
            yield send(halves[1], dst=alone)
        elif rank == alone:
            yield recv(halves[1], src=0)


def side_of(rank: int) -> int:
    """Return the side of the binary tree on which a rank is: 0 left, 1 right, -1 the root."""
    if rank == 0:
        return -1
    while rank > 2:
        rank = (rank - 1) // 2
    return rank - 1


@algorithm(broadcast, chunks=one_per_rank, serves=power_of_two)
def scatter_doubling_broadcast(rank: int, size: int, root: int = 0) -> Steps:
    """Scatter the vector along a binomial tree, then share the parts by recursive doubling."""
    yield from tree_scatter(rank, size, 0)
    for distance in powers_of_two_below(size):
        yield from exchange_missing(rank, distance)


def exchange_missing(rank: int, distance: int) -> Steps:
    """Exchange ``distance`` blocks with the partner at that distance (recursive doubling after a scatter)."""
    partner = rank ^ distance
    mine, theirs = rank // distance * distance, partner // distance * distance
    yield send(range(mine, mine + distance), dst=partner), recv(range(theirs, theirs + distance), src=partner)


# Reductions.


@algorithm(reduce, chunks=one)
def binary_reduce(rank: int, size: int, root: int = 0) -> Steps:
    """The binary tree run backwards: a rank adds the vectors of its children one after the other."""
    for child in heap_children(rank, size):
        yield recv_reduce(0, src=child)
    if rank:
        yield send(0, dst=(rank - 1) // 2)


@algorithm(reduce, chunks=one_per_rank, serves=power_of_two)
def halving_gather_reduce(rank: int, size: int, root: int = 0) -> Steps:
    """Rabenseifner's reduce: recursive halving, then a gather along a binomial tree."""
    yield from recursive_halving_reduce_scatter(rank, size)
    yield from tree_gather(rank, size, 0)


# Every block as one message.


def block_by_block(steps: Steps) -> Steps:
    """Split every message of a program into messages of one chunk."""
    for step in steps:
        ops = (step,) if isinstance(step, Op) else step
        chunks = ((op, (op.chunks,) if isinstance(op.chunks, int) else op.chunks) for op in ops)
        yield tuple(op._replace(chunks=chunk) for op, several in chunks for chunk in several)


@algorithm(all_gather, chunks=one_per_rank, serves=power_of_two)
def swing_blocks_all_gather(rank: int, size: int) -> Steps:
    """Swing's all-gather with one message for each block (libbine: block by block)."""
    for step in range(size.bit_length() - 1):
        yield from block_by_block(swing_step(rank, step, size))


def swing_step(rank: int, step: int, size: int) -> Steps:
    """Return the step of Swing's all-gather in which 2 ** ``step`` blocks are exchanged."""
    yield from [made for at, made in enumerate(swing_all_gather(rank, size)) if at == step]


@algorithm(all_gather, chunks=one_per_rank, serves=power_of_two)
def sparbit_all_gather(rank: int, size: int) -> Steps:
    """Sparbit: distances size/2, size/4, ..., 1, one message for each block (Loch and Koslovski, 2021)."""
    distance, held = size // 2, 1
    while distance:
        right, left = (rank + distance) % size, (rank - distance) % size
        blocks = [2 * distance * position for position in range(held)]
        yield (
            *(send((rank - block) % size, dst=right) for block in blocks),
            *(recv((rank - distance - block) % size, src=left) for block in blocks),
        )
        distance, held = distance // 2, 2 * held


@algorithm(reduce_scatter, chunks=one_per_rank, serves=power_of_two)
def swing_blocks_reduce_scatter(rank: int, size: int) -> Steps:
    """Swing's reduce-scatter with one message for each block (libbine: block by block)."""
    yield from block_by_block(backwards(swing_all_gather(rank, size)))


@algorithm(scatter, chunks=one_per_rank)
def linear_at_once_scatter(rank: int, size: int, root: int = 0) -> Steps:
    """The root posts the sends of all blocks at once."""
    if rank == 0:
        yield tuple(send(peer, dst=peer) for peer in range(1, size))
    else:
        yield recv(rank, src=0)
