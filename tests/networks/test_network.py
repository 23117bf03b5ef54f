"""Links and routes of networks."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from unisono import networks
from unisono.errors import UsageError
from unisono.networks import PRESETS, Endpoint, Near, Network, Nics, ideal


def names(network, size, src, dst):
    table = network.links(size)
    return [table.name(link) for link in network.routes(size, [src], [dst])[0] if link >= 0]


def test_a_message_on_the_ideal_network_takes_the_latency_and_the_bandwidth_once():
    network = ideal(2e-6, 1e10)
    table, routes = network.links(5), network.routes(5, [0, 4], [3, 1])
    assert routes.shape == (2, 2)
    assert table.latency_s[routes].sum(axis=1).tolist() == [2e-6, 2e-6]
    assert table.bandwidth[routes].min(axis=1).tolist() == [1e10, 1e10]


def test_a_message_inside_a_host_uses_near_links_and_another_one_the_nics():
    network = Network("two levels", ranks_per_host=4, near=Near("switch", 1e-6, 1e11), nics=Nics(2, 5e-6, 1e10))
    assert names(network, 8, 4, 6) == ["near link out of rank 4", "near link into rank 6"]
    assert names(network, 8, 1, 6) == ["link out of host 0, NIC 0", "link into host 1, NIC 1"]
    assert names(network, 8, 3, 3) == []


def test_the_row_of_a_short_route_ends_with_minus_one():
    network = Network("memory", ranks_per_host=2)
    routes = network.routes(4, [0, 0, 0], [0, 1, 2])
    assert routes[0].tolist() == [-1, -1]
    assert routes[1].tolist() == [0, -1]
    assert (routes[2] >= 0).all()


def test_half_duplex_uses_one_link_in_both_directions():
    network = Network("half", nics=Nics(1, 0.0, 1e9, full_duplex=False))
    assert set(network.routes(2, [0], [1])[0]) == set(network.routes(2, [1], [0])[0])
    mesh = Network("mesh", ranks_per_host=3, near=Near("mesh", 0.0, 1e9, full_duplex=False))
    assert mesh.routes(3, [0], [2]).tolist() == mesh.routes(3, [2], [0]).tolist()


def test_more_ranks_than_the_network_has_are_refused():
    network = Network("small", hosts=2, ranks_per_host=3)
    assert network.size == 6
    with pytest.raises(UsageError) as caught:
        network.links(7)
    assert caught.value.id == "networks.too_many_ranks"
    assert "7" in caught.value.text("zh")


def test_a_network_of_a_size_has_the_hosts_of_that_size():
    assert Network("any", ranks_per_host=4).for_size(9).hosts == 3


def test_routes_of_many_ranks_are_computed_together():
    src = np.arange(100_000)
    routes = PRESETS["one-switch"].routes(100_000, src, (src + 1) % 100_000)
    assert routes.shape == (100_000, 2)


def test_the_digest_covers_the_numbers_and_not_the_texts():
    network = ideal(1e-6, 1e9)
    assert network.digest != ideal(1e-6, 2e9).digest
    assert network.digest == replace(network, name="other", title="x").digest


@pytest.mark.parametrize("name", list(PRESETS))
def test_a_preset_survives_writing_and_reading(name):
    network = networks.load(name)
    assert network.name == name
    assert network.title
    assert network.source
    assert networks.read_text(network.to_toml(), "copy.toml") == network


def test_every_cost_of_an_endpoint_survives_writing_and_reading():
    endpoint = Endpoint(
        call_overhead_s=2e-6, inline_bytes=200, fetch_s=5e-7, eager_bytes=16384, eager_s_per_byte=4e-10,
        rendezvous_s=1e-6, rendezvous_trips=3, exchange_bytes=1 << 20, copies_input=True,
    )  # fmt: skip
    network = Network("machine", endpoint=endpoint)
    assert networks.read_text(network.to_toml(), "copy.toml") == network


def test_networks_need_no_import_beside_unisono():
    program = "import unisono; print(unisono.networks.load('ideal').name)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout == "ideal\n"
