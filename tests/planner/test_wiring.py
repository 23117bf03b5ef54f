"""The planner's closed forms agree with the simulator, which runs the compiled programs."""

from __future__ import annotations

from dataclasses import replace

import pytest

import unisono
from unisono import networks
from unisono.planner import wiring_of
from unisono.planner.clusters import Members

PROGRAMS = (("all_gather/ring", 1), ("reduce_scatter/ring", 1), ("all_reduce/ring", 2))
# The planner's vectors are long, so that it knows one protocol only.
DGX = replace(networks.load("dgx-h100"), protocols=())


def simulated(name, size, nbytes, network, **options):
    return unisono.simulate(unisono.find(name).schedule(size), nbytes, network, segments=1, **options).time_s


@pytest.mark.parametrize(("name", "passes"), PROGRAMS)
@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_a_ring_inside_a_host_takes_the_simulated_time(name, passes, size):
    for nbytes in (1 << 10, 1 << 20, 1 << 28):
        nbytes = nbytes // size * size
        predicted = wiring_of(DGX).ring_s(nbytes, Members(size, size), passes)
        assert predicted == pytest.approx(simulated(name, size, nbytes, DGX), rel=0.01)


@pytest.mark.parametrize(("name", "passes"), PROGRAMS)
@pytest.mark.parametrize("size", [2, 7, 16])
def test_a_ring_of_one_rank_on_each_host_takes_the_simulated_time(name, passes, size):
    network = replace(DGX, ranks_per_host=1, nics=replace(DGX.nics, count=1))
    for nbytes in (1 << 20, 1 << 28):
        predicted = wiring_of(network).ring_s(nbytes, Members(size, 1), passes)
        assert predicted == pytest.approx(simulated(name, size, nbytes, network), rel=0.02)


@pytest.mark.parametrize(("name", "passes"), PROGRAMS)
def test_each_of_the_rings_through_several_hosts_has_a_nic(name, passes):
    """Eight rings of an eighth of the vector each: the simulator runs one of them, whose NIC carries no other."""
    nbytes = 1 << 30
    predicted = wiring_of(DGX).ring_s(nbytes, Members(16, 8), passes)
    assert predicted == pytest.approx(simulated(name, 16, nbytes // 8, DGX, contention=True), rel=0.05)


def test_collectives_reach_a_share_of_the_links_between_hosts():
    half, whole = wiring_of(DGX, 0.5), wiring_of(DGX)
    assert half.far_bandwidth == whole.far_bandwidth / 2 == 24e9
    assert half.near_bandwidth == whole.near_bandwidth == 370.8e9
    assert whole.leaf_hosts == 32


def test_groups_know_how_many_of_their_ranks_share_a_host():
    wiring = wiring_of(DGX)
    assert wiring.group(8, 1) == Members(8, 8)
    assert wiring.group(16, 1) == Members(16, 8)
    assert wiring.group(4, 2) == Members(4, 4)
    assert wiring.group(16, 2) == Members(16, 4)
    assert wiring.group(4, 8) == Members(4, 1)
    assert wiring.group(4, 16).hosts == 4
