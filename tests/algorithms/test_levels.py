"""Every collective has a hierarchical form that is proved for any nodes and sends the fewest bytes between nodes."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from unisono import algorithm, find, one_per_rank, prove
from unisono.algorithms import algorithms_of
from unisono.algorithms.nodes import home_of, nodes_of
from unisono.algorithms.ring import ring_all_gather
from unisono.collectives import (
    COLLECTIVES,
    all_gather,
    all_reduce,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)
from unisono.errors import UsageError
from unisono.schedule.ops import SEND, count

# Nodes of equal and of different sizes; the last ones list the ranks of each node, as in round-robin placement.
NODES = [
    (3, 1), (1, 3), (4, 4), (2, 2, 1), (5, 2, 3), (1, 1, 1, 1), (7,),
    ((0, 2), (1, 3)), ((0, 2, 4), (1, 3)), ((0, 3, 6), (1, 4, 7), (2, 5)), ((3,), (0, 2), (1, 4)), ((1, 0), (3, 2)),
]  # fmt: skip
HIERARCHICAL = [*(f"{collective}/hierarchical" for collective in COLLECTIVES), "all_reduce/leaders"]


def size_of(node):
    return sum(ranks if isinstance(ranks, int) else len(ranks) for ranks in node)


def roots(name, size):
    return range(size) if find(name).collective.rooted else [None]


@pytest.mark.parametrize("node", NODES, ids=str)
@pytest.mark.parametrize("name", HIERARCHICAL)
def test_hierarchical_algorithms_are_proved_for_any_nodes_and_every_root(name, node):
    size = size_of(node)
    for root in roots(name, size):
        prove(find(name).schedule(size, root, node=node), depth=1)


@pytest.mark.parametrize("name", HIERARCHICAL)
def test_hierarchical_algorithms_are_proved_for_every_size_up_to_seventeen(name):
    for size in range(1, 18):
        for root in {*roots(name, size)} & {None, 0, size // 2, size - 1}:
            for node in (2, 3):
                prove(find(name).schedule(size, root, node=node), depth=1)


@pytest.mark.slow
@pytest.mark.parametrize("largest", [11, pytest.param(17, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", HIERARCHICAL)
def test_hierarchical_algorithms_are_proved_for_every_size_root_and_placement(name, largest):
    for size in range(1, largest + 1):
        for hosts in range(1, size + 1):
            round_robin = tuple(tuple(range(first, size, hosts)) for first in range(hosts))
            for root in roots(name, size):
                prove(find(name).schedule(size, root, node=hosts), depth=1)
                prove(find(name).schedule(size, root, node=round_robin), depth=1)


PAIRS = [
    (collective, inner.name, outer.name)
    for collective in (all_gather, reduce_scatter, broadcast, reduce, gather, scatter)
    for inner in algorithms_of(collective)
    for outer in algorithms_of(collective)
]


@pytest.mark.parametrize(("collective", "inner", "outer"), PAIRS)
def test_any_inner_algorithm_can_be_combined_with_any_outer_one(collective, inner, outer):
    for size, node in ((7, 3), (8, (1, 5, 2)), (6, ((0, 2, 4), (1, 3, 5)))):
        root = size - 2 if collective.rooted else None
        prove(find("hierarchical", collective).schedule(size, root, node=node, inner=inner, outer=outer))


@pytest.mark.parametrize("outer", [each.name for each in algorithms_of(all_reduce)])
@pytest.mark.parametrize("inner", ["naive", "tree", "chain"])
def test_leaders_may_use_any_algorithm_between_them(inner, outer):
    for size, node in ((7, 3), (6, ((0, 2, 4), (1, 3, 5)))):
        prove(find("leaders").schedule(size, node=node, inner=inner, outer=outer))


@algorithm(all_gather, chunks=lambda size: 2 * size)
def two_chunks_per_rank(rank, size):
    yield from ()


@algorithm(all_gather, chunks=one_per_rank)
def my_ring(rank, size):
    yield from ring_all_gather(rank, size)


def test_levels_may_be_given_as_algorithms_and_must_have_one_chunk_per_rank():
    prove(find("all_gather/hierarchical").schedule(6, node=4, inner=my_ring, outer=my_ring))
    with pytest.raises(UsageError, match=r"two_chunks_per_rank inside another .* 4 chunks .* expected 2 chunks"):
        prove(find("all_gather/hierarchical").schedule(6, node=3, outer=two_chunks_per_rank))


@pytest.mark.parametrize(
    ("node", "problem"),
    [
        (((0, 1), (1, 2)), "each rank from 0 to 2 in one node"),
        (((0, 1), ()), "each rank from 0 to 2 in one node"),
        (((0, 1), (3,)), "each rank from 0 to 2 in one node"),
        (((0, 1), 2), "the ranks of each node"),
        ("3", "the ranks of each node"),
        ((), "the ranks of each node"),
    ],
)
def test_invalid_nodes_are_rejected(node, problem):
    with pytest.raises(UsageError, match=problem):
        find("hierarchical").schedule(3, node=node)


def far_chunks(schedule, nodes):
    """Return the chunks that leave each node, and those that enter each node."""
    leaves, enters = Counter(), Counter()
    for rank in range(schedule.size):
        home = home_of(rank, nodes)
        for step in schedule.program(rank):
            for op in step:
                if op.kind == SEND and (there := home_of(op.other, nodes)) != home:
                    leaves[home] += count(op.chunks)
                    enters[there] += count(op.chunks)
    return leaves, enters


def far_bytes(name, node, root=None, **options):
    """Return the busiest direction of the links of each node, as a fraction of the vector."""
    size = size_of(node)
    schedule, nodes = find(name).schedule(size, root, node=node, **options), nodes_of(size, node)
    leaves, enters = far_chunks(schedule, nodes)
    return [Fraction(max(leaves[home], enters[home]), schedule.chunks) for home in range(len(nodes))]


SEVERAL = [node for node in NODES if len(node) > 1]


@pytest.mark.parametrize("node", SEVERAL, ids=str)
def test_an_all_reduce_sends_no_more_between_nodes_than_a_ring_of_nodes(node):
    hosts = len(node)
    for name, outer in (("hierarchical", "ring"), ("hierarchical", "rabenseifner"), ("leaders", "ring")):
        if outer == "ring" or hosts & (hosts - 1) == 0:
            inner = "naive"
            bound = Fraction(2 * (hosts - 1), hosts)
            assert far_bytes(name, node, inner=inner, outer=outer) == [bound] * hosts


@pytest.mark.parametrize("node", SEVERAL, ids=str)
@pytest.mark.parametrize("outer", ["naive", "ring"])
def test_all_gather_and_reduce_scatter_carry_each_block_into_or_out_of_a_node_once(outer, node):
    """Equal nodes: (h-1)/h of the vector. Unequal nodes: all but the blocks of the smallest node, into that node."""
    size, nodes = size_of(node), nodes_of(size_of(node), node)
    enters = far_chunks(find("all_gather/hierarchical").schedule(size, node=node, outer=outer), nodes)[1]
    leaves = far_chunks(find("reduce_scatter/hierarchical").schedule(size, node=node, outer=outer), nodes)[0]
    for home, ranks in enumerate(nodes):
        assert enters[home] == leaves[home] == size - len(ranks)
    if len(set(map(len, nodes))) == 1:
        bound = Fraction(len(nodes) - 1, len(nodes))
        for name in ("all_gather/hierarchical", "reduce_scatter/hierarchical"):
            assert far_bytes(name, node, outer=outer) == [bound] * len(nodes)


@pytest.mark.parametrize("node", SEVERAL, ids=str)
@pytest.mark.parametrize("outer", ["naive", "tree", "chain"])
def test_a_broadcast_enters_each_node_once_and_a_reduce_leaves_it_once(outer, node):
    size, nodes = size_of(node), nodes_of(size_of(node), node)
    for root in range(size):
        options = {"node": node, "outer": outer}
        spread = find("broadcast/hierarchical").schedule(size, root, **options)
        collected = find("reduce/hierarchical").schedule(size, root, **options)
        enters, leaves = far_chunks(spread, nodes)[1], far_chunks(collected, nodes)[0]
        for home in range(len(nodes)):
            once = 0 if home == home_of(root, nodes) else 1
            assert enters[home] == once * spread.chunks
            assert leaves[home] == once * collected.chunks


@pytest.mark.parametrize("node", SEVERAL, ids=str)
def test_a_block_of_gather_scatter_and_all_to_all_crosses_between_nodes_once(node):
    size, nodes = size_of(node), nodes_of(size_of(node), node)
    for root in range(size):
        root_home = home_of(root, nodes)
        far = size - len(nodes[root_home])
        leaves, enters = far_chunks(find("gather/hierarchical").schedule(size, root, node=node), nodes)
        assert (sum(leaves.values()), enters[root_home]) == (far, far)
        leaves, enters = far_chunks(find("scatter/hierarchical").schedule(size, root, node=node), nodes)
        assert (leaves[root_home], sum(enters.values())) == (far, far)
    leaves, enters = far_chunks(find("all_to_all/hierarchical").schedule(size, node=node), nodes)
    for home, ranks in enumerate(nodes):
        assert leaves[home] == enters[home] == len(ranks) * (size - len(ranks))


@pytest.mark.parametrize("node", SEVERAL, ids=str)
def test_only_leaders_send_to_other_nodes(node):
    size, nodes = size_of(node), nodes_of(size_of(node), node)
    for name in ("all_reduce/leaders", "barrier/hierarchical"):
        schedule = find(name).schedule(size, node=node)
        for rank in range(size):
            far = [
                op for step in schedule.program(rank) for op in step
                if not op.is_local and home_of(op.other, nodes) != home_of(rank, nodes)
            ]  # fmt: skip
            assert bool(far) == (rank in {ranks[0] for ranks in nodes})
