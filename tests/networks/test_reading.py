"""Network files: what they mean, and what is reported where they are wrong."""

import re
from pathlib import Path

import pytest

import networks_page
from unisono import networks
from unisono.errors import UsageError
from unisono.networks import FatTree, Protocol, RailOptimized, Torus, read_text, this_machine

PAGE = Path(__file__).parents[2] / "docs" / "networks.md"
EXAMPLE = re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]


def refused(text):
    with pytest.raises(UsageError) as caught:
        read_text(text, "mine.toml")
    return caught.value


def test_the_example_of_the_documentation_works(tmp_path):
    file = tmp_path / "my-cluster.toml"
    file.write_text(EXAMPLE, encoding="utf-8")
    network = networks.load(file)
    assert (network.ranks_per_host, network.nics.count) == (8, 4)
    assert network.nics.bandwidth == 25e9
    assert network.fabric == FatTree(hosts_per_switch=16, oversubscription=2.0)
    assert network.routes(256, [0], [255]).shape == (1, 4)


def test_the_error_in_the_documentation_is_the_one_that_is_raised():
    error = refused(EXAMPLE.replace('"200 Gbit/s"', '"200 Gbit"'))
    assert str(error).replace("mine.toml", "my-cluster.toml") in PAGE.read_text(encoding="utf-8")


def test_the_table_of_presets_is_up_to_date():
    assert networks_page.page() == PAGE.read_text(encoding="utf-8"), "run python tools/networks_page.py"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('latency = "2.5 ms"', 2.5e-3),
        ('latency = "300ns"', 3e-7),
        ('latency = "1e-6 s"', 1e-6),
        ('latency = "0 s"', 0.0),
        ('bandwidth = "8 Mbit/s"', 1e6),
        ('bandwidth = "2 GiB/s"', 2.0 * 2**30),
        ('bandwidth = "inf B/s"', float("inf")),
    ],
)
def test_quantities_have_units(line, expected):
    network = read_text(f'name = "x"\n[nic]\n{line}', "x.toml")
    found = network.nics.latency_s if line.startswith("latency") else network.nics.bandwidth
    assert found == pytest.approx(expected)


def test_a_cost_per_byte_may_be_a_rate():
    text = 'name = "x"\n[endpoint]\nreduce_per_byte = "{}"'
    for cost in ("10 GB/s", "0.1 ns/B"):
        assert read_text(text.format(cost), "x").endpoint.reduce_s_per_byte == pytest.approx(1e-10)


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ('name = "x"\nhosts = 0', 2, "hosts"),
        ('name = "x"\nhosts = true', 2, "hosts"),
        ("name = 3", 1, "name"),
        ('name = "x"\n\n[nic]\n# a comment\nlatency = 5', 5, "nic.latency"),
        ('name = "x"\n[nic]\nlatency = "-1 us"', 3, "nic.latency"),
        ('name = "x"\n[nic]\nbandwidth = "0 GB/s"', 3, "nic.bandwidth"),
        ('name = "x"\n[nic]\nbandwidth = "10 us"', 3, "nic.bandwidth"),
        ('name = "x"\n[nic]\ncount = 2', 3, "nic.count"),
        ('name = "x"\n[near]\nkind = "ring"', 3, "near.kind"),
        ('name = "x"\n[fabric]\nkind = "fat-tree"\noversubscription = 0.5', 4, "fabric.oversubscription"),
        ('name = "x"\n[fabric]\nkind = "fat-tree"\nlevels = 4', 4, "fabric.levels"),
        ('name = "x"\n[fabric]\nkind = "torus"\nshape = [2, 0]', 4, "fabric.shape"),
        ('name = "x"\nnic = 3', 2, "nic"),
        ('name = "x"\nprotocol = 3', 2, "protocol"),
        (
            'name = "x"\n[[protocol]]\nname="a"\nnear_latency="0 s"\nfar_latency="0 s"\n'
            '[[protocol]]\nname="b"\nnear_latency="0 s"\nfar_latency="0 s"\nefficiency=1.5',
            10,
            "protocol.efficiency",
        ),
    ],
)
def test_a_wrong_value_is_reported_with_its_line_and_key(text, line, key):
    error = refused(text)
    assert error.id == "networks.bad_value"
    assert (error.parameters["file"], error.parameters["line"], error.parameters["key"]) == ("mine.toml", line, key)
    assert "应为" in error.text("zh")


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ('name = "x"\nhost = 2', "hosts"),
        ('name = "x"\n[nic]\nbandwith = "1 GB/s"', "bandwidth"),
        ('name = "x"\n[fabrik]\nkind = "torus"', "fabric"),
        ('name = "x"\n[fabric]\nkind = "torus"\nshapes = [2]', "shape"),
    ],
)
def test_an_unknown_key_is_reported_with_the_nearest_one(text, near):
    error = refused(text)
    assert error.id == "networks.no_key"
    assert f"{near!r}" in error.parameters["hint"]
    assert error.parameters["line"] == text[: text.rindex(error.parameters["key"].split(".")[-1])].count("\n") + 1


def test_a_missing_name_is_reported():
    assert refused("hosts = 2").id == "networks.missing_key"
    assert refused('name = "x"\n[[protocol]]\nname = "LL"').parameters["key"] == "near_latency"


def test_text_that_is_not_toml_is_reported_with_its_line():
    error = refused('name = "x"\nhosts = \n')
    assert (error.id, error.parameters["line"]) == ("networks.not_toml", 2)


def test_files_that_cannot_be_read_are_reported(tmp_path):
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, expected in ((tmp_path / "none.toml", "networks.no_file"), (binary, "networks.not_text")):
        with pytest.raises(UsageError) as caught:
            networks.load(str(path))
        assert caught.value.id == expected


def test_an_unknown_preset_is_reported_with_the_nearest_one():
    with pytest.raises(UsageError) as caught:
        networks.load("dgx-h10")
    assert caught.value.id == "networks.no_network"
    assert "dgx-h100" in caught.value.parameters["hint"]


def test_this_machine_is_what_was_saved(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UsageError) as caught:
        networks.load("this-machine")
    assert caught.value.id == "networks.not_measured"
    measured = networks.ideal(1e-6, 1e9)
    this_machine.save(measured)
    assert networks.load("this-machine") == measured


def test_protocols_replace_latencies_and_keep_a_part_of_the_bandwidth():
    network = networks.load("dgx-h100")
    simple, low_latency, _ = network.variants()
    assert simple.protocols == ()
    assert low_latency.near.bandwidth == network.near.bandwidth / 2
    assert low_latency.near.latency_s < simple.near.latency_s
    assert isinstance(network.protocols[0], Protocol)


def test_short_messages_use_the_protocol_with_the_lowest_latency():
    network = networks.load("dgx-h100")
    assert network.for_messages(64, 8).name == "dgx-h100 LL"
    assert network.for_messages(64, 1 << 30).name == "dgx-h100"
    assert networks.load("ideal").for_messages(64, 8).name == "ideal"


@pytest.mark.parametrize("fabric", [RailOptimized(crossing="spine"), Torus(shape=(2, 3))])
def test_a_fabric_survives_writing_and_reading(fabric):
    network = networks.Network("x", ranks_per_host=2, fabric=fabric)
    assert read_text(network.to_toml(), "x.toml") == network
