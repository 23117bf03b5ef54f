from __future__ import annotations

import pytest

from unisono import find, prove
from unisono.algorithms import algorithms_of
from unisono.collectives import all_gather, all_reduce, all_to_all, reduce_scatter

SHAPES = {
    1: [1], 6: [1, 2, 3, 4, 6, (1, 5), (3, 2, 1)], 7: [2, 3, 7, (1, 1, 5), (4, 3)], 8: [2, 4, (3, 5), (1, 2, 5)],
    12: [5, 8, (7, 5), (2, 3, 7)],
}  # fmt: skip
CASES = [(size, node) for size, nodes in SHAPES.items() for node in nodes]
INNER = [algorithm.name for algorithm in algorithms_of(reduce_scatter)]
OUTER = [algorithm.name for algorithm in algorithms_of(all_reduce)]


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("outer", OUTER)
def test_any_inner_algorithm_can_be_combined_with_any_outer_one(inner, outer):
    for size, node in ((6, 2), (7, 3), (8, (1, 5, 2))):
        prove(find("hierarchical").schedule(size, node=node, inner=inner, outer=outer))


@pytest.mark.parametrize("gather", [algorithm.name for algorithm in algorithms_of(all_gather)])
def test_the_all_gather_may_use_another_algorithm(gather):
    prove(find("hierarchical").schedule(7, node=3, inner=f"ring+{gather}", outer="tree"))


@pytest.mark.parametrize(("size", "node"), CASES)
def test_nodes_may_have_any_and_unequal_numbers_of_ranks(size, node):
    prove(find("hierarchical").schedule(size, node=node))
    prove(find("all_to_all/hierarchical").schedule(size, node=node))


@pytest.mark.parametrize(("size", "node"), CASES)
def test_nested_rings_are_near_the_bandwidth_bound(size, node):
    """Unequal nodes cost little: the vector is cut so that every node shares it equally among its ranks."""
    assert prove(find("hierarchical").schedule(size, node=node)).bandwidth_ratio < 1.5


@pytest.mark.parametrize(("size", "node"), [(8, 4), (12, 3), (16, 8)])
def test_slow_links_carry_one_part_of_the_vector_for_each_rank_of_a_node(size, node):
    schedule = find("hierarchical").schedule(size, node=node)
    nodes = size // node
    for rank in range(size):
        across = sum(
            1 if isinstance(op.chunks, int) else len(op.chunks)
            for step in schedule.program(rank)
            for op in step
            if op.kind == "send" and op.other // node != rank // node
        )
        # an all-reduce between the nodes, of the part that this rank owns
        assert across * nodes * node == 2 * (nodes - 1) * schedule.chunks


def test_levels_can_be_nested():
    prove(find("hierarchical").schedule(16, node=2, outer="hierarchical"))


def test_algorithms_may_be_given_as_objects():
    pair = (find("ring", reduce_scatter), find("bruck", all_gather))
    prove(find("hierarchical").schedule(9, node=[4, 5], inner=pair, outer=find("tree")))


def test_the_hierarchical_exchange_sends_one_bundle_to_each_other_node():
    size, node = 12, 4
    schedule = find("all_to_all/hierarchical").schedule(size, node=node)
    for rank in range(size):
        away = [
            op
            for step in schedule.program(rank)
            for op in step
            if op.kind == "send" and op.other // node != rank // node
        ]
        assert len(away) == size // node - 1
    assert all_to_all.least_bytes(size) < prove(schedule).sent
