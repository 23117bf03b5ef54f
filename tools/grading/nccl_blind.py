"""Published nccl-tests results of machines that are not in nccl_tests.csv: every third size.

Where a source gives bus bandwidth, the time follows from it; sizes at which it has fewer than three digits are left
out. Only times are quoted, with their source: facts, a few of each table. The sources' commands say whether one
process serves all GPUs, and which algorithm is forced. ``nccl_texts.BLIND`` says how blind the comparisons were.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from grading.nccl_choice import NVLS, Tuner
from grading.nccl_libraries import dgx_a100, h100, of_one_process, p5
from grading.nccl_model import ALL_GATHER, ALL_REDUCE, Library
from unisono.networks import load

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True)
class Published:
    """A published result: out-of-place times in microseconds, or bus bandwidths in GB/s, by the bytes of a vector."""

    title: str
    source: str
    library: Library
    collective: str
    ranks: int
    times_us: dict[int, float]
    calibrates: bool = False  # fitted to, and not graded


def from_bus_bandwidth(ranks: int, bandwidths: dict[int, float]) -> dict[int, float]:
    """Return the times of all-reduces in microseconds."""
    return {nbytes: nbytes * 2 * (ranks - 1) / ranks / (found * 1e3) for nbytes, found in bandwidths.items()}


def rings_of_gb200() -> Library:
    """Return NCCL on 4 GPUs of a GB200 rack where the source forbids in-switch reduction (NCCL_ALGO=Ring)."""
    network = load("gb200-nvl72")
    return of_one_process(Library("GB200", replace(network, near=replace(network.near, reduce_bandwidth=None))), 4)


def in_switch_of_h100() -> Library:
    """Return NCCL on a host with 8 H100 or H200 where the source asks for in-switch reduction (NCCL_ALGO=NVLS)."""
    return of_one_process(replace(h100(), tuner=None, algorithms=(NVLS,)), 8)


AZURE = "Azure/AI-benchmarking-guide, Azure_Results"
PUBLISHED = (
    Published(
        "1 x ND A100 v4 (Azure)", f"{AZURE}/ND_A100_v4_results.md",
        of_one_process(replace(dgx_a100(), tuner=Tuner(218, 80, 24, 10.0)), 8), ALL_REDUCE, 8,
        from_bus_bandwidth(8, {64 * KIB: 2.70, 512 * KIB: 19.24, 4 * MIB: 71.43, 32 * MIB: 132.77, 256 * MIB: 213.87,
                               GIB: 228.10}),
    ),
    Published(
        "1 x ND H100 v5 (Azure)", f"{AZURE}/ND_H100_v5_results.md", in_switch_of_h100(), ALL_REDUCE, 8,
        from_bus_bandwidth(8, {64 * KIB: 2.72, 512 * KIB: 21.35, 4 * MIB: 128.73, 32 * MIB: 295.53, 256 * MIB: 423.38,
                               GIB: 466.35}),
    ),
    Published(
        "1 x ND H200 v5 (Azure)", f"{AZURE}/ND_H200_v5_results.md", in_switch_of_h100(), ALL_REDUCE, 8,
        from_bus_bandwidth(8, {64 * KIB: 3.72, 512 * KIB: 29.38, 4 * MIB: 138.44, 32 * MIB: 300.91, 256 * MIB: 432.24,
                               GIB: 467.58}),
    ),
    Published(
        "4 GPUs of ND GB200 v6 (Azure), rings", f"{AZURE}/ND_GB200_v6_results.md", rings_of_gb200(), ALL_REDUCE, 4,
        from_bus_bandwidth(4, {64 * KIB: 5.71, 512 * KIB: 44.07, 4 * MIB: 146.27, 32 * MIB: 422.62, 256 * MIB: 593.53,
                               GIB: 646.87}),
    ),
    Published(
        "2 x BM.GPU4.8, 8 A100 (Oracle)", "oracle-quickstart/oci-hpc-oke, GPU and Network Operator guide", dgx_a100(),
        ALL_REDUCE, 16,
        {KIB: 41.97, 8 * KIB: 48.16, 64 * KIB: 51.69, 512 * KIB: 73.94, 4 * MIB: 127.0, 32 * MIB: 452.3,
         256 * MIB: 3042.7, GIB: 9187.8},
    ),
    Published(
        "2 x A3 Ultra, 8 H200 (Google)",
        "GoogleCloudPlatform/cluster-toolkit, examples/gke-consumption-options/dws-flex-start/README.md", h100(),
        ALL_GATHER, 16,
        {KIB: 54.07, 8 * KIB: 56.05, 64 * KIB: 59.20, 512 * KIB: 64.83, 4 * MIB: 83.21, 32 * MIB: 184.2,
         256 * MIB: 877.5, GIB: 3105.7},
    ),
    Published(
        "2 x p5.48xlarge, 8 H100 (Amazon)", "aws-samples/awsome-distributed-training, micro-benchmarks/nccl-tests",
        p5(), ALL_REDUCE, 16,
        {KIB: 69.24, 8 * KIB: 81.44, 64 * KIB: 135.1, 512 * KIB: 123.7, 4 * MIB: 168.6, 32 * MIB: 439.7,
         256 * MIB: 1468.2, GIB: 4607.6}, calibrates=True,
    ),
    Published(
        "2 x 8 H200, 400 Gbit/s Ethernet (Dell)", "schmaustech/nvidia-tools-image, README.md", h100(), ALL_REDUCE, 16,
        {KIB: 45.06, 8 * KIB: 47.64, 64 * KIB: 70.32, 512 * KIB: 80.78, 4 * MIB: 106.13, 32 * MIB: 276.88,
         256 * MIB: 1275.21, GIB: 4388.55},
    ),
    Published(
        "2 x 8 H100, InfiniBand (Nebius)", "skypilot-org/skypilot, examples/nebius_infiniband/README.md", h100(),
        ALL_REDUCE, 16, {512 * MIB: 2432.7, GIB: 4523.3},
    ),
)  # fmt: skip
