"""The UCX libraries that are tried, in their order, and the settings that follow from the address of a rank."""

from __future__ import annotations

import pytest

from unisono.bootstrap import ucx_search
from unisono.bootstrap.interfaces import Interface

INTERFACES = [Interface("lo", "127.0.0.1"), Interface("ib0", "10.1.0.5"), Interface("eth0", "fd00::5")]


def test_a_loaded_library_comes_before_that_of_the_system_and_those_of_packages():
    tried = ucx_search.candidates(packages=["no-such-package"])
    assert tried == ["loaded:libucp.so.0", "libucp.so.0"]
    assert ucx_search.candidates()[:2] == tried


def test_a_path_is_the_only_candidate():
    assert ucx_search.candidates("/opt/ucx/lib/libucp.so.0") == ["/opt/ucx/lib/libucp.so.0"]


def test_a_package_that_contains_ucx_is_found():
    found = ucx_search.packaged_libraries()
    if not found:
        pytest.skip("SKIPPED, NOT TESTED: UCX (pip install libucx-cu12)")
    assert all(path.endswith("/libucp.so.0") for path in found)


@pytest.fixture
def devices(tmp_path):
    """Return folders like those of Linux, in which ib0 has an RDMA device with two ports."""
    network, rdma = tmp_path / "net", tmp_path / "infiniband"
    (network / "ib0" / "device" / "infiniband" / "mlx5_0").mkdir(parents=True)
    (network / "eth0" / "device").mkdir(parents=True)
    for port in ("1", "2"):
        (rdma / "mlx5_0" / "ports" / port).mkdir(parents=True)
    return {"network": network, "rdma": rdma}


def test_ucx_uses_the_interface_of_the_address_and_its_rdma_devices(devices):
    settings = dict(ucx_search.settings("10.1.0.5", None, interfaces=INTERFACES, **devices))
    assert settings["NET_DEVICES"] == "ib0,mlx5_0:1,mlx5_0:2"
    assert settings["TCP_TX_SEG_SIZE"] == "256k"
    assert "TCP_PORT_RANGE" not in settings


def test_settings_follow_the_family_of_the_address_and_the_ports(devices):
    settings = dict(ucx_search.settings("fd00::5", range(40000, 40010), interfaces=INTERFACES, **devices))
    assert settings["NET_DEVICES"] == "eth0"
    assert settings["TCP_AF_PRIO"] == "inet6,inet"
    assert settings["TCP_PORT_RANGE"] == "40000-40009"


def test_an_address_without_an_interface_leaves_the_choice_to_ucx(devices):
    assert "NET_DEVICES" not in dict(ucx_search.settings("10.9.9.9", None, interfaces=INTERFACES, **devices))


class FakeCourier:
    transport = "ucx 1.20.0"
    tls = ""

    def __init__(self, *resources):
        self.ucx_resources = list(resources)


class TcpCourier:
    transport = "tcp"
    tls = ""
    ucx_resources = ()


def test_the_description_names_the_devices_and_the_reason_for_no_rdma(devices, tmp_path):
    rdma = devices["rdma"]
    assert ucx_search.describe(FakeCourier("self/memory", "tcp/ib0", "rc_mlx5/mlx5_0:1"), rdma) == (
        "ucx 1.20.0 (tcp/ib0, rc_mlx5/mlx5_0:1)"
    )
    assert ucx_search.describe(FakeCourier("tcp/ib0", "cma/memory"), rdma) == (
        "ucx 1.20.0 (tcp/ib0; no RDMA: this UCX library does not use mlx5_0)"
    )
    assert ucx_search.describe(TcpCourier(), rdma) == (
        'tcp (no RDMA: only transport="ucx" supports it; RDMA devices of this host: mlx5_0)'
    )
    assert ucx_search.describe(TcpCourier(), tmp_path / "none") == (
        'tcp (no RDMA: only transport="ucx" supports it; RDMA devices of this host: none)'
    )
    assert ucx_search.describe(FakeCourier("tcp/eth0"), tmp_path / "none") == (
        "ucx 1.20.0 (tcp/eth0; no RDMA: this host has no RDMA device)"
    )


@pytest.mark.parametrize(
    ("resources", "expected"),
    [([], False), (["tcp/eth0", "self/memory", "cuda_copy/cuda"], False), (["tcp/ib0", "rc_mlx5/mlx5_0:1"], True)],
)
def test_rdma_is_recognized_by_the_names_of_the_transports(resources, expected):
    assert ucx_search.uses_rdma(resources) is expected
