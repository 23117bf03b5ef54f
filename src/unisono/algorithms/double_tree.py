"""Double binary tree: two trees, each for half of the vector; an inner rank of one is a leaf of the other."""

from unisono.algorithms.declaration import Steps, algorithm
from unisono.collectives import all_reduce
from unisono.schedule import recv, recv_reduce, send


def roundest(low: int, high: int) -> int:
    """Return the number in low..high-1 that the highest power of two divides."""
    bit = 1 << ((low - 1) ^ (high - 1)).bit_length() - 1
    return (high - 1) & -bit


def neighbours(rank: int, size: int) -> tuple[list[int], list[int]]:
    """Return the parent (none or one) and the children of a rank in a binary tree whose odd ranks are leaves.

    Rank 0 is the root and has one child. Below it, the rank at the top of an interval of ranks is the roundest
    number in it; what is left and right of that are the intervals of its children.
    """
    low, high, parent, top = 0, size, [], 0
    while top != rank:
        low, high = (low, top) if rank < top else (top + 1, high)
        parent, top = [top], roundest(low, high)
    return parent, [roundest(*part) for part in ((low, top), (top + 1, high)) if part[0] < part[1]]


@algorithm(all_reduce, chunks=2)
def double_tree(rank: int, size: int) -> Steps:
    """Each of two trees sums half of the vector and sends it back down; leaves of one are inner ranks of the other.

    (Sanders, Speck and Träff, 2009.)
    """
    # The second tree is the first with ranks renamed so that odd and even change places: mirrored where the size
    # is even, shifted by one where it is odd. Position i of a tree is rank (first + turn·i) % size.
    views = []
    for chunk, (first, turn) in enumerate([(0, 1), (-1, -1 if size % 2 == 0 else 1)]):
        parent, children = neighbours(turn * (rank - first) % size, size)
        views.append((
            chunk,
            [(first + turn * position) % size for position in parent],
            [(first + turn * position) % size for position in children],
        ))  # fmt: skip
    leaf, inner = sorted(views, key=lambda view: len(view[2]))
    yield from upwards(*leaf)  # a leaf waits for no other rank, so it goes first
    yield from upwards(*inner)
    yield from downwards(*inner)
    yield from downwards(*leaf)


def upwards(chunk: int, parent: list[int], children: list[int]) -> Steps:
    """Add the sums of the children, then pass the sum to the parent."""
    yield tuple(recv_reduce(chunk, src=child) for child in children)
    yield tuple(send(chunk, dst=above) for above in parent)


def downwards(chunk: int, parent: list[int], children: list[int]) -> Steps:
    """Receive the result from the parent, then pass it to the children."""
    yield tuple(recv(chunk, src=above) for above in parent)
    yield tuple(send(chunk, dst=child) for child in children)
