"""The topology of a communicator, as tables and messages write it."""

from __future__ import annotations

import pytest

from unisono import algorithm, find, one_per_rank, prove
from unisono.algorithms.ring import ring
from unisono.collectives import all_reduce
from unisono.comm.topology import host_options, hosts_of, node_option, rank_counts, topology_of

ROUND_ROBIN = ((0, 2), (1, 3))


@pytest.mark.parametrize(
    ("hosts", "topology"),
    [
        (None, "4"), (((0, 1, 2, 3),), "4"), (((0, 1), (2, 3)), "2x2"), (ROUND_ROBIN, "2x2"),
        (((0, 1, 2), (3,)), "3+1"), (((0,), (1, 2, 3)), "3+1"), (((0,), (1,), (2,), (3,)), "4x1"),
        (((0, 3), (1,), (2,)), "2+1+1"),
    ],
)  # fmt: skip
def test_a_topology_states_the_ranks_of_each_host_and_not_their_placement(hosts, topology):
    assert topology_of(4, hosts) == topology


@pytest.mark.parametrize(
    ("topology", "counts"), [("8", (8,)), ("2x4", (4, 4)), ("3+1", (3, 1)), ("3x1", (1, 1, 1)), ("5+2+2", (5, 2, 2))]
)
def test_a_topology_is_read_back(topology, counts):
    assert rank_counts(topology) == counts
    assert topology_of(sum(counts), hosts_of(counts)) == topology


@pytest.mark.parametrize(
    "text",
    ["", "0", "-1", "1x4", "1+3", "2+2", "2x", "x2", "2x2x2", "2x0", "+", "3+", "3+0", "٢", "2 x 4", "1000001"],
)  # fmt: skip
def test_each_topology_is_written_in_one_way(text):
    assert rank_counts(text) is None


@pytest.mark.parametrize(
    ("hosts", "node"),
    [
        (((0, 1), (2, 3)), 2), (((0, 1, 2), (3,)), (3, 1)), (((0,), (1, 2, 3)), (1, 3)), (ROUND_ROBIN, ROUND_ROBIN),
        (((2, 3), (0, 1)), ((2, 3), (0, 1))),
    ],
)  # fmt: skip
def test_the_nodes_of_a_hierarchical_algorithm_are_the_hosts(hosts, node):
    assert node_option(hosts) == node
    prove(find("hierarchical").schedule(4, node=node))


@algorithm(all_reduce, chunks=one_per_rank)
def of_a_user(rank, size, node=3):
    yield from ring(rank, size)


def test_only_built_in_algorithms_with_nodes_use_the_hosts():
    assert host_options(find("hierarchical"), ROUND_ROBIN) == {"node": ROUND_ROBIN}
    assert host_options(find("hierarchical"), None) == {}
    assert host_options(find("hierarchical"), ((0, 1, 2, 3),)) == {}
    assert host_options(find("ring"), ROUND_ROBIN) == {}
    assert host_options(of_a_user, ROUND_ROBIN) == {}
