"""The topology of a communicator, as tables and messages write it."""

from __future__ import annotations

import pytest

from unisono import algorithm, find, one_per_rank, prove
from unisono.algorithms.host_options import host_options, node_option
from unisono.algorithms.nodes import crossing_part
from unisono.algorithms.ring import ring
from unisono.collectives import COLLECTIVES, all_reduce, all_to_all
from unisono.comm.candidates import candidates_for
from unisono.comm.ranking import ranking_for
from unisono.comm.topology import hosts_of, least_crossing, rank_counts, topology_of

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


@pytest.mark.parametrize("counts", [(1, 1), (2, 2), (4, 4), (3, 1), (1, 1, 1), (2, 2, 2, 2)])
def test_no_program_sends_less_between_hosts_than_the_bound_and_the_best_ones_send_no_more(counts):
    hosts, size = hosts_of(counts), sum(counts)
    for collective in COLLECTIVES:
        if not collective.carries_data:
            continue
        bound, root = least_crossing(collective, counts), 0 if collective.rooted else None
        for variant in candidates_for(collective, size, hosts):
            assert crossing_part(variant.schedule(size, root), hosts) >= bound, (collective, variant)
        longest = ranking_for(collective, size, hosts).best(1 << 28)
        if len(set(counts)) == 1 and collective is not all_to_all:
            assert crossing_part(longest.schedule(size, root), hosts) == bound, collective


def test_the_bound_of_an_all_reduce_on_h_hosts_is_that_of_a_ring_of_hosts():
    assert [least_crossing(all_reduce, (4,) * hosts) for hosts in (1, 2, 4)] == [0, 1, 1.5]
    assert least_crossing(all_to_all, (2, 2)) == 1
