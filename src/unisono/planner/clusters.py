"""Clusters: accelerators, the network between them, and the times of collectives on it, in closed form.

The planner compares thousands of combinations, so it does not simulate each collective. ``Wiring`` gives the time of
a collective from the latencies and bandwidths of the network: the textbook forms of the ring.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unisono import networks
from unisono.errors import UsageError
from unisono.networks import Network
from unisono.planner import messages
from unisono.planner.choices import choose
from unisono.planner.programs import DEFAULT, Program, find_program
from unisono.planner.quantities import read_bytes

MOST_GPUS = 1_000_000


@dataclass(frozen=True)
class Machine:
    """An accelerator.

    ``peak_flops``, ``memory_bytes``, ``memory_bandwidth``: of the data sheet, per second where that applies.
    ``matmul_flops``: the rate that matrix products of the best shape reach, as others measured it.
    ``attention_flops``: the rate that the attention kernel reaches, forward and backward, likewise.
    """

    name: str
    peak_flops: float
    memory_bytes: float
    memory_bandwidth: float
    matmul_flops: float
    attention_flops: float
    usable_share: float = 0.85  # of the memory; the rest is for fragmentation and for buffers of the library


# Data sheets: dense bf16 operations per second, memory, bandwidth of the memory. Matrix products: the table "maximum
# achievable matmul" of github.com/stas00/ml-engineering (744d01e, compute/accelerator). Attention: FlashAttention-2
# (arXiv 2307.08691) reports 50 to 73 % of the peak of an A100, here 60 %, and 335e12 on H100; for B200 there is no
# such report, so that the share of H100 is assumed.
MACHINES = {
    machine.name: machine
    for machine in (
        Machine("h100", 989e12, 80e9, 3.35e12, 794.5e12, 335e12),
        Machine("h200", 989e12, 141e9, 4.8e12, 794.5e12, 335e12),
        Machine("a100", 312e12, 80e9, 2.04e12, 271.2e12, 187e12),
        Machine("a100-40gb", 312e12, 40e9, 1.56e12, 271.2e12, 187e12),
        Machine("b200", 2250e12, 180e9, 8e12, 1745e12, 762e12),
    )
}
# The accelerator of a preset network.
MACHINE_OF_NETWORK = {
    "dgx-h100": "h100", "aws-p5": "h100", "dgx-a100": "a100", "aws-p4d": "a100-40gb", "polaris": "a100-40gb",
    "gb200-nvl72": "b200",
}  # fmt: skip


@dataclass(frozen=True)
class Members:
    """The place of a group of ranks: its size and the number of its ranks on one host."""

    size: int
    per_host: int

    @property
    def hosts(self) -> int:
        """The number of hosts with ranks of the group."""
        return -(-self.size // self.per_host)

    @property
    def is_far(self) -> bool:
        """Whether the group has ranks on several hosts."""
        return self.hosts > 1


@dataclass(frozen=True)
class Wiring:
    """Latencies and bandwidths of a network as the planner uses them.

    ``near_*``: between two ranks of a host; ``far_*``: between hosts, for one rank. ``call_s``: once for each
    collective. ``leaf_hosts``: the hosts under one leaf switch (None: all).
    """

    per_host: int
    near_latency_s: float
    near_bandwidth: float
    far_latency_s: float
    far_bandwidth: float
    call_s: float = 0.0
    leaf_hosts: int | None = None

    def group(self, size: int, stride: int) -> Members:
        """Return the place of a group of ``size`` ranks, each ``stride`` ranks from the next."""
        return Members(size, max(1, min(size, self.per_host // stride)))

    def bandwidth(self, members: Members) -> float:
        """Return the rate at which a ring through the group moves bytes, for each rank."""
        return self.far_bandwidth * members.per_host if members.is_far else self.near_bandwidth

    def latency_s(self, members: Members) -> float:
        """Return the latency of a pass: a chunk makes one hop less than the ring has, the others inside hosts."""
        steps, far = members.size - 1, min(members.hosts, members.size - 1) if members.is_far else 0
        return far * self.far_latency_s + (steps - far) * self.near_latency_s

    def pass_s(self, nbytes: float, members: Members) -> float:
        """Return the time in which a vector of ``nbytes`` moves around the ring, without latency.

        A group with several ranks on a host has as many rings, each through another NIC.
        """
        return nbytes * (members.size - 1) / members.size / self.bandwidth(members)

    def ring_s(self, nbytes: float, members: Members, passes: int = 1) -> float:
        """Return the time of a collective: one pass is an all-gather or a reduce-scatter, two are an all-reduce."""
        if members.size == 1:
            return 0.0
        return passes * (self.latency_s(members) + self.pass_s(nbytes, members)) + self.call_s

    def message_s(self, nbytes: float, is_far: bool) -> float:
        """Return the time of a message between two ranks."""
        if is_far:
            return self.far_latency_s + nbytes / self.far_bandwidth
        return self.near_latency_s + nbytes / self.near_bandwidth


def wiring_of(network: Network, far_share: float = 1.0) -> Wiring:
    """Return the latencies and bandwidths of a network; collectives reach ``far_share`` of those between hosts."""
    per_host, nics = network.ranks_per_host, network.nics
    endpoint = network.endpoint
    message_s = endpoint.send_overhead_s + endpoint.receive_overhead_s
    return Wiring(
        per_host=per_host,
        near_latency_s=network.near.latency_s + message_s,
        near_bandwidth=network.near.bandwidth,
        far_latency_s=nics.latency_s + message_s,
        far_bandwidth=nics.bandwidth * nics.count / per_host * far_share,
        call_s=endpoint.call_overhead_s,
        leaf_hosts=getattr(network.fabric, "hosts_per_switch", None),
    )


@dataclass(frozen=True)
class Cluster:
    """Accelerators of one kind on a network, and the program that trains on them.

    ``memory_bytes``: of each accelerator, where it is not that of the data sheet.
    """

    gpus: int
    network: Network
    machine: Machine
    memory_bytes: float = 0.0
    program: Program = DEFAULT

    @property
    def memory(self) -> float:
        """The bytes of memory of a GPU."""
        return self.memory_bytes or self.machine.memory_bytes

    @property
    def usable(self) -> float:
        """The bytes of memory that a plan may fill."""
        return self.memory * self.machine.usable_share

    @property
    def wiring(self) -> Wiring:
        """The latencies and bandwidths of the network."""
        return wiring_of(self.network, self.program.far_share)


def find_cluster(
    gpus: int, network: Network | str | Path, memory: str | float = 0, machine: Machine | str = "",
    program: Program | str = DEFAULT,
) -> Cluster:  # fmt: skip
    """Return a cluster.

    ``network``: a network, the name of a preset, or the path of a network file. ``machine``: an accelerator or its
    name (default: that of the preset, else "h100"). ``memory``: of each GPU, such as "80GB". ``program``: a set of
    constants or its name.
    """
    if isinstance(gpus, bool) or not isinstance(gpus, int) or not 1 <= gpus <= MOST_GPUS:
        raise UsageError(messages.OUT_OF_RANGE(what="gpus", least=1, most=MOST_GPUS, found=repr(gpus)[:40]))
    if not isinstance(network, Network | str | Path):
        raise UsageError(messages.NO_SUCH_NETWORK(found=repr(network)[:40]))
    found = network if isinstance(network, Network) else networks.load(network)
    found.hosts_of(gpus)  # it raises where they do not fit
    accelerator = machine or MACHINE_OF_NETWORK.get(found.name, "h100")
    if not isinstance(accelerator, Machine):
        accelerator = choose(str(accelerator), MACHINES, messages.NO_MACHINE)
    nbytes = read_bytes(memory, "memory") if memory else 0.0
    if memory and not 1e9 <= nbytes <= 1e13:
        raise UsageError(messages.OUT_OF_RANGE(what="memory", least="1GB", most="10TB", found=str(memory)[:40]))
    return Cluster(gpus, found, accelerator, nbytes, find_program(program))
