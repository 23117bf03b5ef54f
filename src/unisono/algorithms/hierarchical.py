"""The hierarchical family: one algorithm inside the nodes, another between them (see nodes.py)."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from math import isqrt, lcm

from unisono.algorithms import messages
from unisono.algorithms.declaration import Algorithm, Steps, algorithm
from unisono.algorithms.nodes import Node, Nodes, hashable, home_of, nodes_of
from unisono.collectives import all_gather, all_reduce, reduce_scatter
from unisono.errors import UsageError
from unisono.schedule import mapped
from unisono.schedule.varying import Table, span

# The inner algorithm, by name: a reduce-scatter and the all-gather that undoes it.
Pair = str | tuple[Algorithm, Algorithm]
# Most pairs have one name; these do not.
UNDONE_BY = {"recursive_halving": "recursive_doubling"}


class Layout:
    """The cut of the vector, so that every node can share it equally among its ranks.

    *Piece*: there are as many as the least common multiple of the node sizes, so that each rank owns a whole number
    of pieces after the reduce-scatter in its node. Each piece is cut into the chunks of the outer algorithm.
    """

    def __init__(self, size: int, node: Node, inner: Pair, outer: str | Algorithm) -> None:
        from unisono.algorithms.catalogue import find  # which lists this algorithm too

        self.nodes = nodes_of(size, node)
        if isinstance(inner, str):
            first, _, second = inner.partition("+")  # "ring", or "ring+bruck"
            self.inner = find(first, reduce_scatter), find(second or UNDONE_BY.get(first, first), all_gather)
        else:
            self.inner = inner
        self.outer = find(outer, all_reduce) if isinstance(outer, str) else outer
        self.pieces = lcm(*(phase.chunk_count(len(ranks)) for ranks in self.nodes for phase in self.inner))
        self.per_piece = self.outer.chunk_count(len(self.nodes))
        self.chunks = self.pieces * self.per_piece
        self.ranges = Table(_ranges(self.nodes, self.pieces))
        # Of each rank: the indices of the ranges of pieces that it owns.
        owned: list[list[int]] = [[] for _ in range(size)]
        for index, (owners, *_) in enumerate(self.ranges):
            for rank in owners:
                owned[rank].append(index)
        self.owned = Table(map(tuple, owned))

    @property
    def scratch(self) -> int:
        """The scratch slots of the phase that needs the most."""
        across = max(length for *_, length in self.ranges) * self.outer.scratch_count(len(self.nodes))
        inside = (
            self.chunks // phase.chunk_count(len(ranks)) * phase.scratch_count(len(ranks))
            for ranks in self.nodes
            for phase in self.inner
        )
        return max(across, *inside)

    def inside(self, phase: Algorithm, rank: int, ranks: Sequence[int]) -> Steps:
        """Run an inner phase in one node, on the whole vector."""
        amount, scratch = phase.chunk_count(len(ranks)), phase.scratch_count(len(ranks))
        width = self.chunks // amount
        chunks = blocks(0, amount, width) + blocks(self.chunks, scratch, width)
        yield from mapped(phase(ranks.index(rank), len(ranks)), ranks=ranks, chunks=chunks)

    def across(self, rank: int, home: int) -> Steps:
        """Run the outer algorithm for every range of pieces that this rank owns.

        A rank may own several ranges, each with other ranks; all ranks take them in the same order, so that they do
        not deadlock.
        """
        scratch = self.outer.scratch_count(len(self.nodes))
        for index in self.owned[rank]:
            owners, start, length = self.ranges[index]
            chunks = blocks(start * self.per_piece, self.per_piece, length)
            chunks += blocks(self.chunks, scratch, length)
            yield from mapped(self.outer(home, len(self.nodes)), ranks=owners, chunks=chunks)


def blocks(first: int, amount: int, width: int) -> list[range]:
    """Return ``amount`` neighbouring ranges of ``width`` chunks each, from chunk ``first`` on."""
    return [span(first + index * width, width) for index in range(amount)]


def _ranges(nodes: Nodes, pieces: int) -> list[tuple[Table[int], int, int]]:
    """Return owners (one rank of each node), first piece and length of each range of pieces with the same owners."""
    found = []
    start = 0
    for owners, pieces_of_owners in groupby(
        Table(ranks[piece * len(ranks) // pieces] for ranks in nodes) for piece in range(pieces)
    ):
        length = len(list(pieces_of_owners))
        found.append((owners, start, length))
        start += length
    return found


def layout(size: int, node: Node, inner: Pair, outer: str | Algorithm) -> Layout:
    """Return the layout for one hierarchical schedule."""
    return _layout(size, hashable(node), inner, outer)


_layout = lru_cache(maxsize=16)(Layout)  # the same for every rank of a schedule


@algorithm(
    all_reduce,
    chunks=lambda size, node, inner, outer: layout(size, node, inner, outer).chunks,
    scratch=lambda size, node, inner, outer: layout(size, node, inner, outer).scratch,
)
def hierarchical(
    rank: int, size: int, node: Node = 4, inner: Pair = "ring", outer: str | Algorithm = "ring"
) -> Steps:
    """Reduce-scatter inside the node, all-reduce between nodes, all-gather inside: slow links carry little.

    (BlueConnect: Cho et al., 2019.)
    """
    cut = layout(size, node, inner, outer)
    home = home_of(rank, cut.nodes)
    reduce_inside, gather_inside = cut.inner
    yield from cut.inside(reduce_inside, rank, cut.nodes[home])
    yield from cut.across(rank, home)
    yield from cut.inside(gather_inside, rank, cut.nodes[home])


def columns_of(size: int, rows: int | None) -> int:
    """Return the number of ranks in a row; without ``rows`` the grid is as square as it can be."""
    if rows is None:
        rows = max(divisor for divisor in range(1, isqrt(size) + 1) if size % divisor == 0)
    if not isinstance(rows, int) or rows < 1 or size % rows:
        raise UsageError(messages.BAD_ROWS(algorithm="all_reduce/torus", rows=repr(rows), size=size))
    return size // rows


@algorithm(all_reduce, chunks=lambda size, rows: hierarchical.chunk_count(size, node=columns_of(size, rows)))
def torus(rank: int, size: int, rows: int | None = None) -> Steps:
    """A hierarchical algorithm on a grid: the nodes are its rows, and both dimensions use rings.

    (2-D torus: Mikami et al., 2018.)
    """
    yield from hierarchical(rank, size, node=columns_of(size, rows), inner="ring", outer="ring")
