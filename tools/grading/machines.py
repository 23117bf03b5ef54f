"""The machines whose collectives are graded: their rows, and which of them calibrate, are graded, or are left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from grading.explanations import FUGAKU, LEONARDO, MARENOSTRUM
from grading.mapping import CRAY_MPICH, FUJITSU_MPI, NO_PROGRAM, OPEN_MPI, Implementation
from grading.measurements import Row
from unisono import networks
from unisono.networks import Network
from unisono.networks.fabrics.torus import Torus

KIB, MIB = 1 << 10, 1 << 20
# The costs that are fitted, and where the fit starts: round numbers for a machine of that kind, the same for both
# with InfiniBand.
INFINIBAND = {
    "call_overhead_s": 3e-6, "overhead_s": 1e-7, "fetch_s": 1e-6, "eager_s_per_byte": 1e-10,
    "receive_s_per_byte": 1e-10, "rendezvous_s": 3e-6, "jitter_s": 3e-6, "exchange_bytes": 2e6,
    "reduce_s_per_byte": 5e-11, "copy_s_per_byte": 6e-11, "beyond_cache": 2.0, "allocate_s_per_byte": 2e-10,
    "latency_s": 1.3e-6, "hop_latency_s": 2e-7,
}  # fmt: skip
TOFU = {
    "call_overhead_s": 1e-6, "overhead_s": 1e-6, "handling_s_per_byte": 1e-10, "fetch_s": 5e-7, "rendezvous_s": 5e-6,
    "reduce_s_per_byte": 3e-11, "copy_s_per_byte": 1e-10, "link_bandwidth": 6.8e9,
}  # fmt: skip


@dataclass(frozen=True)
class Machine:
    """A machine of the file. ``calibrates`` says whether a row may be used for calibration."""

    title: str
    system: str
    preset: str
    library: dict[str, dict[str, Implementation]]
    nodes: tuple[str, ...]
    fitted: dict[str, float]  # the costs that are fitted, and where the fit starts
    calibrates: Callable[[Row], bool]
    calibration: str  # the same in words
    explanation: str = ""  # of the largest errors
    too_long: Callable[[Row, Implementation], bool] = lambda row, made: False  # to be simulated

    def network(self, nodes: str = "") -> Network:
        """Return the preset; a torus has the shape of the job."""
        network = networks.load(self.preset)
        if isinstance(network.fabric, Torus) and "x" in nodes:
            shape = tuple(map(int, nodes.split("x")))
            return replace(network, hosts=None, fabric=replace(network.fabric, shape=shape))
        return network

    def implementation(self, row: Row) -> Implementation | None:
        """Return the program of a row, if it has one for its number of ranks."""
        found = self.library.get(row.collective, {}).get(row.algorithm)
        return found if found is not None and found.algorithm.can_serve(row.size) else None

    def falls_back(self, row: Row) -> bool:
        """Return whether a vector has too few elements for the chunks of its program."""
        found = self.library[row.collective][row.algorithm].algorithm
        return found.chunk_count(row.size) > row.nbytes // 4

    def left_out(self, row: Row) -> str | None:
        """Return the reason for which a row is not graded."""
        if "default_" in row.algorithm or row.algorithm == "default-default":
            return "the library's default: not one algorithm"
        if self.implementation(row) is None:
            return next((why for part, why in NO_PROGRAM.items() if part in row.algorithm), "no program in Unisono")
        if self.too_long(row, self.library[row.collective][row.algorithm]):
            return "more than a million messages: not simulated"
        if self.falls_back(row):
            return "fewer elements than ranks: the library falls back to another algorithm"
        return None


def every_second_size(row: Row) -> bool:
    """Return whether a size is one of 32 B, 2 KiB, 128 KiB, 8 MiB and 512 MiB."""
    return row.nbytes in (32, 2 * KIB, 128 * KIB, 8 * MIB, 512 * MIB)


def calibrates_leonardo(row: Row) -> bool:
    """Return whether a row of Leonardo calibrates: algorithms of many steps take long to simulate on 512 ranks."""
    if row.collective == "ALLGATHER" and row.algorithm in ("ring_ompi", "neighbor_ompi"):
        return row.nbytes in (2 * KIB, 128 * KIB)
    many_steps = ("ring", "neighbor", "block_by_block", "sparbit")
    return every_second_size(row) and not any(part in row.algorithm for part in many_steps)


MACHINES = (
    Machine(
        "MareNostrum 5, 32 and 60 nodes", "mare_nostrum", "marenostrum5", OPEN_MPI, ("32", "60"),
        INFINIBAND | {"bandwidth": 25e9},
        lambda row: (
            row.nodes == "32"
            and row.collective in ("ALLGATHER", "ALLREDUCE", "BCAST", "ALLTOALL", "REDUCE_SCATTER")
            and every_second_size(row)
        ),
        "all-gather, all-reduce, broadcast, all-to-all and reduce-scatter on 32 nodes at 32 B, 2 KiB, 128 KiB, 8 MiB "
        "and 512 MiB",
        MARENOSTRUM,
    ),
    Machine(
        "Leonardo, 512 nodes", "leonardo", "leonardo", OPEN_MPI, ("512",), INFINIBAND,
        calibrates_leonardo,
        "all-gather and all-reduce at 32 B, 2 KiB, 128 KiB, 8 MiB and 512 MiB with algorithms of at most 18 steps, "
        "and all-gather by ring and neighbour exchange at 2 KiB and 128 KiB; the bandwidth is that of an "
        "HDR100 port",
        LEONARDO,
    ),
    Machine(
        "Fugaku, 2x2x2 and 4x4x4 nodes", "fugaku", "fugaku", FUJITSU_MPI, ("2x2x2", "4x4x4"), TOFU,
        lambda row: row.nodes == "2x2x2" and row.collective in ("ALLGATHER", "ALLREDUCE", "BCAST", "SCATTER")
        and every_second_size(row) and row.nbytes < 512 * MIB,
        "all-gather, all-reduce, broadcast and scatter on 2x2x2 nodes at 32 B, 2 KiB, 128 KiB and 8 MiB",
        FUGAKU,
    ),
)  # fmt: skip

# No row of LUMI calibrates anything: it is predicted with the preset of another machine whose NICs have 25 GB/s, too.
LUMI = Machine("LUMI", "lumi", "marenostrum5", CRAY_MPICH, (), {}, lambda row: False, "none")
