"""The choice of NCCL between its algorithms and protocols, by NCCL's own estimates (src/graph/tuning.cc).

NCCL estimates the time of each algorithm with each protocol from tables of latencies and bandwidths that its authors
measured on other machines, and takes the smallest. Its estimate can be far from the truth; that is why the choice
and the prediction are different things here: the simulator predicts the time of what NCCL chooses. The numbers are
those of NCCL 2.18.3 and 2.21.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

LL, LL128, SIMPLE = PROTOCOLS = ("LL", "LL128", "Simple")
RING, TREE, NVLS = ALGORITHMS = ("ring", "tree", "NVLS")
# Microseconds, in the order of PROTOCOLS.
CALL_US = {TREE: (6.8, 14.0, 0.0), RING: (6.6, 14.0, 8.4)}
NEAR_US = {TREE: (0.6, 1.25, 4.0), RING: (0.6, 1.9, 3.4)}
FAR_US = {TREE: (5.0, 8.5, 14.0), RING: (2.7, 4.0, 14.0)}
SLOW_TREE_US = 28.0  # NCCL 2.19 to 2.21: a step of a tree with Simple, inside a host and between hosts
NVLS_US = 25.0
# GB/s, on one, two and more hosts.
MOST_LL = {80: (87.7, 22.5, 19.0), 90: (141.0, 45.0, 35.0)}
MOST_LL128 = {80: 20.0, 90: 36.7}  # of a channel
MOST_TREE = {80: (24.0, 23.6, 17.8), 90: (38.7, 41.4, 36.0)}  # of a channel
# By which part a tree is slower than NCCL's formula, for 64 B, 128 B, ..., in the order of PROTOCOLS.
TREE_CORRECTION = (
    (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1),
    (1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1),
    (*(0.9,) * 7, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9),
)  # fmt: skip


@dataclass(frozen=True)
class Tuner:
    """What NCCL knows of a machine. ``version`` is 218 for NCCL 2.18; ``gpu`` is 80 for A100 and 90 for H100.

    ``channels`` and ``channel_gb_s`` are those of its ring search, ``net_us`` the latency that the network reports.
    """

    version: int
    gpu: int
    channels: int
    channel_gb_s: float
    net_us: float = 0.0
    has_ll128: bool = True
    in_switch: bool = False
    post_us: float = 2.0  # of a processor by AMD; 1.0 by others

    def choose(self, reduces_and_shares: bool, nbytes: int, hosts: int, per_host: int) -> tuple[str, str]:
        """Return the algorithm and the protocol; only an all-reduce can use a tree."""
        times = {
            (algorithm, protocol): self._estimate(algorithm, index, reduces_and_shares, nbytes, hosts, per_host)
            for algorithm in (ALGORITHMS if reduces_and_shares else (RING,))
            for index, protocol in enumerate(PROTOCOLS)
            if self._has(algorithm, protocol, hosts)
        }
        return min(times, key=times.__getitem__)

    def _has(self, algorithm: str, protocol: str, hosts: int) -> bool:
        if algorithm == NVLS:
            return self.in_switch and hosts == 1 and protocol == SIMPLE
        return protocol != LL128 or self.has_ll128

    def _estimate(
        self, algorithm: str, index: int, reduces_and_shares: bool, nbytes: int, hosts: int, per_host: int
    ) -> float:
        """Return NCCL's estimate in microseconds."""
        size = hosts * per_host
        bandwidth = self._bandwidth(algorithm, index, reduces_and_shares, hosts)
        if algorithm == NVLS:
            return NVLS_US + nbytes / (1000 * bandwidth * 5 / 6)
        if algorithm == RING:
            steps = 2 * (size - 1) if reduces_and_shares else size - 1
            return self._ring_latency(index, reduces_and_shares, nbytes, hosts, size) + nbytes * steps / (
                size * 1000 * bandwidth
            )
        return self._tree_latency(index, hosts, per_host) + nbytes / (
            500 * bandwidth * _correction(index, nbytes)
        )  # fmt: skip

    def _bandwidth(self, algorithm: str, index: int, reduces_and_shares: bool, hosts: int) -> float:
        scale, bus = min(hosts, 3) - 1, self.channels * self.channel_gb_s
        most_ll, most_ll128 = MOST_LL[self.gpu if hosts == 1 else 80][scale], self.channels * MOST_LL128[self.gpu]
        if algorithm == RING and PROTOCOLS[index] == LL:
            part = 0.5 if self.version >= 219 else 0.25 if hosts > 1 or reduces_and_shares else 1 / 3
            return min(most_ll, bus * part)
        if algorithm == RING:
            return bus if PROTOCOLS[index] == SIMPLE else min(bus * 0.92, most_ll128)
        if algorithm == NVLS:
            return bus
        bus = min(bus * 0.92, self.channels * MOST_TREE[self.gpu][scale])
        if PROTOCOLS[index] == SIMPLE:
            return bus
        return (
            min(bus / 3.8, most_ll)
            if PROTOCOLS[index] == LL
            else min(bus * (7 / 9 if hosts == 1 else 0.9375), most_ll128)
        )

    def _ring_latency(self, index: int, reduces_and_shares: bool, nbytes: int, hosts: int, size: int) -> float:
        steps = 2 * (size - 1) if reduces_and_shares else size - 1
        far_steps = (2 * hosts if hosts > 1 else 0) if reduces_and_shares else hosts - 1
        simple = PROTOCOLS[index] == SIMPLE
        post = 0.0 if hosts == 1 else self.post_us * (3 if simple else 1)
        far = FAR_US[RING][index] + self.net_us * (2 if simple else 1)
        latency = CALL_US[RING][index] + (steps - far_steps) * max(NEAR_US[RING][index], post) + far_steps * far
        plateau = simple and hosts > 1 and reduces_and_shares and nbytes / (self.channels * size) >= 64
        return latency * 1.4 if plateau else latency

    def _tree_latency(self, index: int, hosts: int, per_host: int) -> float:
        near, far = NEAR_US[TREE][index], FAR_US[TREE][index]
        if PROTOCOLS[index] == SIMPLE:
            if 219 <= self.version < 222:
                near = far = SLOW_TREE_US
            far += self.net_us
        far += self.net_us
        return CALL_US[TREE][index] + 2 * ((per_host - 1) * near + int(math.log2(hosts)) * far)


def _correction(index: int, nbytes: int) -> float:
    place = int(math.log2(max(nbytes >> 6, 1)))
    return TREE_CORRECTION[index][place] if place < len(TREE_CORRECTION[index]) else 1.0
