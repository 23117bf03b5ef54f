"""Routes through each kind of fabric, and what holds for all of them."""

from collections import deque
from itertools import product

import numpy as np
import pytest

from unisono.networks import Dragonfly, FatTree, Near, Network, Nics, RailOptimized, Switch, Torus

FABRICS = {
    "switch": Switch(),
    "fat tree": FatTree(hosts_per_switch=2),
    "thin fat tree": FatTree(hosts_per_switch=3, oversubscription=2.0),
    "three levels": FatTree(levels=3, hosts_per_switch=2, switches_per_pod=2, oversubscription=2.0),
    "rails": RailOptimized(hosts_per_switch=2, crossing="spine"),
    "rails changed inside the host": RailOptimized(hosts_per_switch=2),
    "rails in three levels": RailOptimized(levels=3, hosts_per_switch=2, switches_per_pod=1),
    "dragonfly": Dragonfly(hosts_per_router=1, routers_per_group=2, links_per_pair=2),
    "ring": Torus(dimensions=1),
    "2-D torus": Torus(dimensions=2),
    "3-D torus": Torus(shape=(3, 2, 3)),
}
NIC, TRUNK = 1e9, 1e-6


def network(fabric, nics=2, per_host=4):
    return Network("n", ranks_per_host=per_host, nics=Nics(nics, 0.0, NIC), fabric=fabric, near=Near("switch"))


def pairs(size):
    return np.array(list(product(range(size), repeat=2))).T


def names(net, size, src, dst):
    table = net.links(size)
    return [table.name(link) for link in net.routes(size, [src], [dst])[0] if link >= 0]


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7, 8, 13, 40, 59])
def test_every_route_consists_of_different_links_of_the_table_with_the_empty_entries_last(fabric, size):
    net = network(fabric)
    src, dst = pairs(size)
    routes, links = net.routes(size, src, dst), len(net.links(size))
    assert routes.max(initial=-1) < links
    for a, b, row in zip(src, dst, routes, strict=True):
        used = [link for link in row if link >= 0]
        assert list(row[: len(used)]) == used
        assert len(set(used)) == len(used)
        assert bool(used) == (a != b)


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS)
def test_a_route_is_the_same_alone_and_among_others(fabric):
    net = network(fabric)
    src, dst = pairs(40)
    together = net.routes(40, src, dst)
    for index in range(0, len(src), 37):
        alone = net.routes(40, src[index : index + 1], dst[index : index + 1])[0]
        assert alone.tolist() == together[index, : len(alone)].tolist()


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=FABRICS)
def test_every_link_has_a_name_that_no_other_link_has(fabric):
    table = network(fabric).links(40)
    assert len({table.name(link) for link in range(len(table))}) == len(table)


def test_hosts_of_one_leaf_do_not_use_the_spines():
    net = network(FatTree(hosts_per_switch=2), nics=1, per_host=1)
    assert len(names(net, 6, 0, 1)) == 2
    assert names(net, 6, 1, 4)[1:3] == [
        "link up from leaf switch 0, number 0",
        "link down to leaf switch 2, number 0",
    ]


def test_a_shift_of_all_hosts_of_a_full_fat_tree_shares_no_link():
    net = network(FatTree(hosts_per_switch=4), nics=1, per_host=1)
    ranks = np.arange(16)
    for shift in range(1, 16):
        routes = net.routes(16, ranks, (ranks + shift) % 16)
        used = routes[routes >= 0]
        assert len(np.unique(used)) == len(used)


@pytest.mark.parametrize("oversubscription", [1.0, 2.0, 3.0])
def test_the_links_above_a_switch_are_thinner_by_the_oversubscription(oversubscription):
    fabric = FatTree(levels=3, hosts_per_switch=6, switches_per_pod=6, oversubscription=oversubscription)
    below = 6 * 6 * 2 * NIC
    for _, switches, links, bandwidth in fabric._stages(72, 2, NIC):
        pods = 2
        below /= oversubscription
        assert switches * links * bandwidth == pytest.approx(below * pods)


def test_trunks_are_as_fast_as_they_say():
    fabric = FatTree(hosts_per_switch=16, oversubscription=2.0, trunk_bandwidth=4 * NIC)
    assert fabric._stages(16, 1, NIC) == [("leaf switch", 1, 2, 4 * NIC)]


def test_equal_nics_of_a_rail_fabric_are_one_switch_apart():
    net = network(RailOptimized(hosts_per_switch=4), nics=4)
    assert names(net, 16, 1, 13) == ["link out of host 0, NIC 1", "link into host 3, NIC 1"]
    assert names(net, 16, 1, 14) == [
        "near link out of rank 1", "near link into rank 2", "link out of host 0, NIC 2", "link into host 3, NIC 2",
    ]  # fmt: skip
    spine = network(RailOptimized(hosts_per_switch=4, crossing="spine"), nics=4)
    assert names(spine, 16, 1, 14)[0] == "link out of host 0, NIC 1"
    assert len(names(spine, 16, 1, 14)) == 4


def test_a_dragonfly_needs_at_most_one_cable_and_two_local_links():
    net = network(Dragonfly(hosts_per_router=2, routers_per_group=3, links_per_pair=1, groups=3), nics=1, per_host=1)
    assert net.size == 18
    src, dst = pairs(18)
    table, routes = net.links(18), net.routes(18, src, dst)
    for a, b, row in zip(src, dst, routes, strict=True):
        cables = [table.name(link) for link in row[1:4] if link >= 0 and "group" in table.name(link)]
        assert sum("from group" in name for name in cables) == (a // 6 != b // 6)
        assert sum("from router" in name for name in cables) <= 2


def test_the_two_directions_of_a_cable_join_the_same_routers():
    net = network(Dragonfly(hosts_per_router=1, routers_per_group=2, links_per_pair=2, groups=3), nics=1, per_host=1)
    # Ranks 0 and 2 are even, so both directions use cable 0.
    there, back = names(net, 6, 0, 2), names(net, 6, 2, 0)
    assert "link 0 from group 0 to group 1" in there
    assert "link 0 from group 1 to group 0" in back
    assert len(there) == len(back)


@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 2, 2), (3, 4, 2)])
def test_torus_routes_are_shortest(shape):
    net = network(Torus(shape=shape), nics=1, per_host=1)
    size = int(np.prod(shape))
    src, dst = pairs(size)
    hops = (net.routes(size, src, dst) >= 0).sum(axis=1).reshape(size, size)
    for start in range(size):
        distance = {start: 0}
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            at = np.unravel_index(here, shape, order="F")
            for axis, step in product(range(len(shape)), (-1, 1)):
                there = list(at)
                there[axis] = (there[axis] + step) % shape[axis]
                neighbour = int(np.ravel_multi_index(there, shape, order="F"))
                if neighbour not in distance:
                    distance[neighbour] = distance[here] + 1
                    waiting.append(neighbour)
        assert [hops[start, end] for end in range(size) if end != start] == [
            distance[end] + 2 for end in range(size) if end != start
        ]


@pytest.mark.parametrize(
    ("hosts", "shape"),
    [(1, (1, 1, 1)), (8, (2, 2, 2)), (7, (2, 2, 2)), (64, (4, 4, 4)), (32, (4, 4, 2)), (13, (5, 3, 1))],
)
def test_a_torus_without_a_shape_is_a_small_box(hosts, shape):
    assert Torus(dimensions=3).shape_of(hosts) == shape


def test_a_torus_with_a_shape_has_that_many_hosts():
    assert network(Torus(shape=(4, 3)), per_host=4).size == 48


def test_routes_of_a_hundred_thousand_ranks_take_a_moment():
    size = 100_000
    src = np.arange(size)
    for fabric in (FatTree(levels=3, hosts_per_switch=32), Dragonfly(hosts_per_router=16, routers_per_group=32)):
        net = network(fabric, nics=8, per_host=8)
        assert (net.routes(size, src, (src + 8) % size)[:, 0] >= 0).all()
