"""The machines of nccl_tests.csv: a preset, NCCL's view of it, and numbers that were fitted.

``SETTINGS`` are the ten ways in which NCCL was set up on Polaris: versions 2.18 and 2.21; TCP (setups 1 and 2,
without and with NCCL variables) or libfabric (3: aws-ofi-nccl; 4: with variables for Slingshot; 5: with software
matching). See the README of argonne-lcf/alcf-nccl-tests. ``nccl_fit.py`` fits them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from grading.nccl_choice import LL, Tuner
from grading.nccl_model import Library
from unisono.networks import Network, load

US, GB = 1e-6, 1e9
EAGER_BYTES = 64 << 10  # libfabric on Slingshot: from here on, a rendezvous


class Setting(NamedTuple):
    """Fitted numbers: latencies of far steps with LL and Simple, bandwidth of a NIC, and so on (see ``Library``)."""

    far_ll_us: float
    far_us: float
    nic_gb_s: float
    host_peer_us: float
    far_ll_efficiency: float
    rendezvous_us: float
    tcp: bool = False


SETTINGS = {
    "nccl_2_18 setup1": Setting(24.2, 190.0, 4.3, 7.1, 0.14, 32.0, tcp=True),
    "nccl_2_18 setup2": Setting(25.5, 177.0, 1.6, 7.9, 0.58, 0.0, tcp=True),
    "nccl_2_18 setup3": Setting(6.5, 28.0, 17.9, 2.7, 0.07, 22.0),
    "nccl_2_18 setup4": Setting(5.9, 34.0, 18.0, 2.5, 0.1, 20.0),
    "nccl_2_18 setup5": Setting(28.0, 62.0, 18.3, 4.5, 0.21, 44.0),
    "nccl_2_21 setup1": Setting(24.4, 491.0, 1.6, 6.6, 0.37, 35.0, tcp=True),
    "nccl_2_21 setup2": Setting(30.6, 478.0, 1.5, 7.6, 0.4, 115.0, tcp=True),
    "nccl_2_21 setup3": Setting(5.4, 24.0, 18.1, 3.2, 0.1, 173.0),
    "nccl_2_21 setup4": Setting(6.4, 37.0, 18.0, 2.5, 0.13, 49.0),
    "nccl_2_21 setup5": Setting(28.7, 51.0, 18.2, 4.6, 0.12, 58.0),
}
POLARIS_CHANNELS, POLARIS_CHANNEL_GB_S = 4, 10.0


def polaris(name: str, setting: Setting | None = None) -> Library:
    """Return NCCL on Polaris with one of the settings, or with other numbers."""
    setting = setting or SETTINGS[name]
    version = 218 if "2_18" in name else 221
    return Library(
        name,
        _polaris_network(load("polaris"), setting),
        Tuner(version, 80, POLARIS_CHANNELS, POLARIS_CHANNEL_GB_S, has_ll128=False),
        most_channels=POLARIS_CHANNELS,
        host_peer_s=setting.host_peer_us * US,
        eager_bytes=EAGER_BYTES,
        rendezvous_s=setting.rendezvous_us * US,
        buffered=setting.tcp,
    )


def _polaris_network(network: Network, setting: Setting) -> Network:
    protocols = tuple(
        replace(protocol, far_latency_s=setting.far_ll_us * US, far_efficiency=setting.far_ll_efficiency)
        for protocol in network.protocols
        if protocol.name == LL
    )
    nics = replace(network.nics, latency_s=setting.far_us * US, bandwidth=setting.nic_gb_s * GB)
    return replace(network, nics=nics, protocols=protocols)


def a100() -> Library:
    """Return NCCL on one host with 8 A100; one process enqueues the calls of all GPUs, one after the other."""
    return Library(
        "8xA100-SXM4-40GB NVSwitch", load("dgx-a100"), Tuner(218, 80, 24, 10.0), most_channels=32,
        host_call_s=35.0 * US, host_channel_s=1.5 * US, host_peer_s=3.3 * US,
    )  # fmt: skip


def h100() -> Library:
    """Return NCCL on one DGX H100."""
    return Library("DGX H100 1 node", load("dgx-h100"), Tuner(221, 90, 24, 15.45, in_switch=True))


def p4de() -> Library:
    """Return NCCL on p4de instances."""
    return Library("2x p4de.24xlarge A100", load("aws-p4d"))
