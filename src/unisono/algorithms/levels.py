"""The levels of a hierarchical algorithm: one algorithm inside the nodes, another between them (see nodes.py).

*Leader*: the rank that exchanges data with other nodes for its node: the root in its node, the first rank in others.

*Column c*: the c-th rank of every node. In a node with fewer ranks, the ranks take further columns in turn.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from math import lcm
from typing import Any, NamedTuple

from unisono.algorithms import messages
from unisono.algorithms.declaration import Algorithm, Steps
from unisono.algorithms.hierarchical import blocks
from unisono.algorithms.nodes import Node, Nodes, hashable, nodes_of
from unisono.collectives import Collective
from unisono.errors import UsageError
from unisono.schedule import Chunks, mapped
from unisono.schedule.varying import Table

Name = str | Algorithm


class Column(NamedTuple):
    """One rank of each node, and the blocks that it has in this column: its own, or none."""

    ranks: Table[int]
    blocks: Table[Sequence[int]]


def node_columns(nodes: Nodes) -> list[Column]:
    """Return all columns, in the order in which every rank takes its own, so that ranks do not deadlock."""
    return [
        Column(
            Table(ranks[index % len(ranks)] for ranks in nodes), Table(ranks[index : index + 1] for ranks in nodes)
        )
        for index in range(max(map(len, nodes)))
    ]


def per_rank(name: str | Algorithm, collective: Collective, size: int) -> Algorithm:
    """Return an algorithm for one level; raise UsageError unless it has one chunk per rank and no scratch slots."""
    from unisono.algorithms.catalogue import find  # which lists the algorithms of this module too

    phase = find(name, collective) if isinstance(name, str) else name
    chunks, scratch = phase.chunk_count(size), phase.scratch_count(size)
    if chunks != size or scratch:
        raise UsageError(messages.ONE_CHUNK_PER_RANK(algorithm=phase, chunks=chunks, scratch=scratch, size=size))
    return phase


class Levels:
    """The nodes, the algorithms of each level, and the cut of the vector that suits all of them."""

    def __init__(
        self, size: int, node: Node, inner: Name, inside: tuple[Collective, ...], outer: Name, across: Collective
    ) -> None:
        from unisono.algorithms.catalogue import find  # which lists the algorithms of this module too

        self.nodes = nodes_of(size, node)
        self.inner = [find(inner, collective) if isinstance(inner, str) else inner for collective in inside]
        self.outer = find(outer, across) if isinstance(outer, str) else outer
        phases = [(phase, len(ranks)) for phase in self.inner for ranks in self.nodes]
        phases.append((self.outer, len(self.nodes)))
        self.chunks = lcm(*(phase.chunk_count(ranks) for phase, ranks in phases))
        self.scratch = max(
            self.chunks // phase.chunk_count(ranks) * phase.scratch_count(ranks) for phase, ranks in phases
        )

    @cached_property
    def first_ranks(self) -> Table[int]:
        """The first rank of each node."""
        return Table(ranks[0] for ranks in self.nodes)

    def run(self, phase: Algorithm, rank: int, ranks: Sequence[int], root: int | None = None) -> Steps:
        """Run one level on the whole vector."""
        amount, scratch = phase.chunk_count(len(ranks)), phase.scratch_count(len(ranks))
        width = self.chunks // amount
        yield from level(phase, rank, ranks, blocks(0, amount, width) + blocks(self.chunks, scratch, width), root)


def level(
    phase: Algorithm, rank: int, ranks: Sequence[int], chunks: Sequence[Chunks], root: int | None = None
) -> Steps:
    """Run an algorithm among some ranks; the other ranks do nothing."""
    if rank in ranks:
        options = {} if root is None else {"root": ranks.index(root)}
        yield from mapped(phase(ranks.index(rank), len(ranks), **options), ranks=ranks, chunks=chunks)


def leaders_of(nodes: Nodes, root: int) -> Table[int]:
    """Return the leader of each node."""
    return Table(root if root in ranks else ranks[0] for ranks in nodes)


_levels = lru_cache(maxsize=16)(Levels)  # the same for every rank of a schedule


def levels(
    size: int, node: Node, inner: Name, inside: tuple[Collective, ...], outer: Name, across: Collective
) -> Levels:
    """Return the levels of one schedule."""
    return _levels(size, hashable(node), inner, inside, outer, across)


def amounts(inside: tuple[Collective, ...], across: Collective) -> dict[str, Any]:
    """Return the numbers of chunks and scratch slots of a declaration."""
    return {
        "chunks": lambda size, node, inner, outer: levels(size, node, inner, inside, outer, across).chunks,
        "scratch": lambda size, node, inner, outer: levels(size, node, inner, inside, outer, across).scratch,
    }
