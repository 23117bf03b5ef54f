"""The machines of nccl_tests.csv: a preset, NCCL's view of it, and numbers that were fitted.

``FITTED`` are all numbers that do not come from a public source. ``nccl_fit.py`` prints them; the presets contain
those that describe a network (tests/networks/test_nccl_grading.py compares them).

NCCL was set up in five ways on Polaris, with versions 2.18 and 2.21: over TCP (setups 1 and 2, without and with NCCL
variables) or libfabric (3: aws-ofi-nccl; 4: with variables for Slingshot; 5: with software matching). See the README
of argonne-lcf/alcf-nccl-tests. Versions share the numbers of a setup, all setups of a transport share those of the
transport, and all machines share ``ll_gb_s``; ``process`` is a process that serves several GPUs (nccl-tests -g).
Setup 1 with version 2.18 has another bandwidth than the rest of TCP; the reason is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from grading.nccl_choice import FAR_US, LL, LL128, PROTOCOLS, RING, SIMPLE, Tuner
from grading.nccl_model import US, Library
from unisono.networks import Network, load

GB = 1e9
LONG_BYTES = 1 << 20
RDMA_US = FAR_US[RING][PROTOCOLS.index(SIMPLE)]  # a step with an RDMA NIC: 14 us, with LL and LL128 as well
EFA_US = 75.0  # the latency that aws-ofi-nccl reports for p4d (src/platform-aws.cpp)
FITTED = {
    "a100.near_gb_s": 216.0,
    "process.gpu_us": 4.4,
    "process.channel_us": 0.163,
    "process.peer_us": 0.404,
    "h100.near_ll_us": 0.811,
    "h100.reduce_gb_s": 279.0,
    "efa.message_us": 9.76,
    "p5.net_us": 17.8,
    "libfabric.nic_gb_s": 18.2,
    "libfabric.exchange_gb_s": 5.34,
    "libfabric.inline_us": 11.0,
    "tcp.nic_gb_s": 1.56,
    "tcp.nic_2_18_setup1_gb_s": 4.09,
    "tcp.exchange_gb_s": 1.49,
    "setup1.message_us": 15.8,
    "setup1.ring_ll_us": 21.2,
    "setup2.message_us": 17.6,
    "setup2.ring_ll_us": 24.7,
    "setup3.message_us": 4.31,
    "setup3.ring_ll_us": 3.73,
    "setup3.rendezvous_us": 11.1,
    "setup4.message_us": 4.23,
    "setup4.ring_ll_us": 3.26,
    "setup4.rendezvous_us": 4.49,
    "setup5.message_us": 10.2,
    "setup5.ring_ll_us": 23.6,
    "setup5.rendezvous_us": 8.25,
    "ll_gb_s": 1.76,
}
Numbers = Mapping[str, float]
TCP_SETUPS = ("setup1", "setup2")
POLARIS = tuple(f"nccl_{version} setup{setup}" for version in ("2_18", "2_21") for setup in range(1, 6))
POLARIS_CHANNELS, POLARIS_CHANNEL_GB_S = 4, 10.0


def libraries(numbers: Numbers = FITTED) -> dict[str, Library]:
    """Return NCCL on all machines, by the name that the file has for them."""
    found = [a100(numbers), dgx_a100(numbers), h100(numbers), p4de(numbers), p5(numbers)]
    found += [polaris(name, numbers) for name in POLARIS]
    return {library.name: library for library in found}


def polaris(name: str, numbers: Numbers = FITTED) -> Library:
    """Return NCCL on Polaris with one of the setups."""
    setup = name.split()[1]
    transport = "tcp" if setup in TCP_SETUPS else "libfabric"
    nic = "tcp.nic_2_18_setup1_gb_s" if name == "nccl_2_18 setup1" else f"{transport}.nic_gb_s"
    network = load("polaris")
    return Library(
        name,
        replace(network, nics=replace(network.nics, bandwidth=numbers[nic] * GB)),
        Tuner(218 if "2_18" in name else 221, 80, POLARIS_CHANNELS, POLARIS_CHANNEL_GB_S, has_ll128=False),
        most_channels=POLARIS_CHANNELS,
        message_s=numbers[f"{setup}.message_us"] * US,
        ring_ll_s=numbers[f"{setup}.ring_ll_us"] * US,
        rendezvous_s=numbers.get(f"{setup}.rendezvous_us", 0.0) * US,
        inline_s=numbers.get(f"{transport}.inline_us", 0.0) * US,
        ll_rate=numbers["ll_gb_s"] * GB,
        exchange_rate=numbers[f"{transport}.exchange_gb_s"] * GB,
    )


def _with_near(network: Network, numbers: Numbers) -> Network:
    """Return a network with the fitted bandwidth of A100s behind NVSwitch."""
    return replace(network, near=replace(network.near, bandwidth=numbers["a100.near_gb_s"] * GB))


def dgx_a100(numbers: Numbers = FITTED) -> Library:
    """Return NCCL on hosts with 8 A100 on NVSwitch and a NIC for each; every GPU has its process."""
    return Library("DGX A100", _with_near(load("dgx-a100"), numbers), **_rdma(numbers))


def _rdma(numbers: Numbers) -> dict[str, float]:
    return {"least_far_s": RDMA_US * US, "ll_rate": numbers["ll_gb_s"] * GB}


def a100(numbers: Numbers = FITTED) -> Library:
    """Return NCCL on one host with 8 A100; one process enqueues the calls of all GPUs, one after the other."""
    name = "8xA100-SXM4-40GB NVSwitch"
    return of_one_process(replace(dgx_a100(numbers), name=name, tuner=Tuner(218, 80, 24, 10.0)), 8, numbers)


def of_one_process(library: Library, gpus: int, numbers: Numbers = FITTED) -> Library:
    """Return a library whose calls one process enqueues for all GPUs, one after the other (nccl-tests -g)."""
    return replace(
        library,
        host_call_s=gpus * numbers["process.gpu_us"] * US,
        host_channel_s=gpus * numbers["process.channel_us"] * US,
        host_peer_s=gpus * numbers["process.peer_us"] * US,
    )


def h100(numbers: Numbers = FITTED) -> Library:
    """Return NCCL on DGX H100."""
    network = load("dgx-h100")
    protocols = tuple(
        replace(each, near_latency_s=numbers["h100.near_ll_us"] * US) if each.name == LL else each
        for each in network.protocols
    )
    near = replace(network.near, reduce_bandwidth=numbers["h100.reduce_gb_s"] * GB)
    return Library(
        "DGX H100 1 node", replace(network, near=near, protocols=protocols),
        Tuner(221, 90, 24, 15.45, in_switch=True), **_rdma(numbers),
    )  # fmt: skip


def p4de(numbers: Numbers = FITTED) -> Library:
    """Return NCCL on p4de instances."""
    return Library(
        "2x p4de.24xlarge A100", _with_near(load("aws-p4d"), numbers), most_channels=8,
        message_s=numbers["efa.message_us"] * US, net_s=EFA_US * US, ll_rate=numbers["ll_gb_s"] * GB,
    )  # fmt: skip


def p5(numbers: Numbers = FITTED) -> Library:
    """Return NCCL on p5 instances: H100 as in DGX H100, messages of EFA as in p4de, with another latency.

    Its rows are few: they decide on its latency only.
    """
    return replace(
        p4de(),
        name="p5.48xlarge",
        network=replace(h100().network, nics=load("aws-p5").nics),
        most_channels=16,
        net_s=numbers["p5.net_us"] * US,
    )


def _far(library: Library) -> dict[str, float]:
    return {
        "nic.latency_s": library.far_latency_s(RING, SIMPLE, library.most_channels, LONG_BYTES),
        "LL.far_latency_s": library.far_latency_s(RING, LL, 1, 0),
        "LL128.far_latency_s": library.far_latency_s(RING, LL128, library.most_channels, LONG_BYTES),
    }


def preset_numbers(numbers: Numbers = FITTED) -> dict[str, dict[str, float]]:
    """Return the numbers of presets that follow from the fitted ones, in seconds and bytes per second, rounded.

    A preset has one latency between hosts for each protocol: with LL that of a single channel, otherwise that of a
    ring of long messages on all channels. ``polaris`` is NCCL with setup 4.
    """
    p4d, slingshot = p4de(numbers), polaris("nccl_2_21 setup4", numbers)
    a100_near = {"near.bandwidth": numbers["a100.near_gb_s"] * GB}
    h100_near = {
        "LL.near_latency_s": numbers["h100.near_ll_us"] * US,
        "near.reduce_bandwidth": numbers["h100.reduce_gb_s"] * GB,
    }
    nics = slingshot.network.nics
    found = {
        "dgx-a100": a100_near | _far(dgx_a100(numbers)),
        "dgx-h100": h100_near | _far(h100(numbers)),
        "gb200-nvl72": _far(h100(numbers)),
        "aws-p4d": a100_near | _far(p4d),
        "aws-p5": h100_near | _far(p5(numbers)),
        "polaris": {
            "nic.latency_s": slingshot.far_latency_s(RING, SIMPLE, slingshot.most_channels, LONG_BYTES),
            "nic.bandwidth": nics.bandwidth,
            "LL.far_latency_s": slingshot.far_latency_s(RING, LL, 1, 0),
            "LL.far_efficiency": slingshot.ll_rate * slingshot.most_channels / (nics.bandwidth * nics.count),
        },
    }
    return {preset: {key: float(f"{number:.3g}") for key, number in each.items()} for preset, each in found.items()}
