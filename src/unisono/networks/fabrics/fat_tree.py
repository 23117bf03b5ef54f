r"""A tree of switches in two or three levels, in which the upper levels may be thinner than the lower ones.

Two levels::

    spine          S0      S1          each leaf has a link to each spine
                  /  \    /  \
    leaf         L0   L1    L2
               / |   | \    | \
    hosts     0  1   2  3   4  5       hosts_per_switch = 2

Three levels: ``switches_per_pod`` leaves and their spines form a pod, and core switches connect the spines of all
pods.

Oversubscription is the bandwidth of the hosts of a switch divided by the bandwidth of its links to the level above;
it holds at each level. Routing is static, as InfiniBand does it (destination modulo k): the port of the destination
selects the spine (``port mod k``) and the core switch (``port div k mod c``), so that all messages to one port share
one path down, and messages to consecutive ports are spread over all spines.

Rail-optimized trees differ in the leaf of a NIC: NIC ``i`` of each host of a group of ``hosts_per_switch`` hosts is
attached to leaf ``i`` of the group, so that equal NICs are one switch apart::

    leaf (rail)   L0           L1          NIC 0 of every host on L0, NIC 1 on L1
                 /  \         /  \
    NICs       0:0  1:0     0:1  1:1       host:NIC
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from unisono.message import Message, Template
from unisono.networks import messages
from unisono.networks.links import Ids, Section


@dataclass(frozen=True)
class FatTree:
    """A fat tree of ``levels`` 2 or 3. Each link between switches adds ``hop_latency_s``.

    ``trunk_bandwidth`` is that of one link between switches (None: that of a NIC); the number of links follows from
    it and from ``oversubscription``.
    """

    levels: int = 2
    hosts_per_switch: int = 16
    switches_per_pod: int = 16
    oversubscription: float = 1.0
    trunk_bandwidth: float | None = None
    hop_latency_s: float = 0.0

    @property
    def kind(self) -> str:
        """The word in a network file."""
        return "fat-tree"

    @property
    def changes_rail(self) -> bool:
        """Messages do not change rails inside a host."""
        return False

    def most_hosts(self) -> int | None:
        """Return None: there are as many leaves as the hosts need."""
        return None

    def sections(self, hosts: int, nics: int, bandwidth: float) -> list[Section]:
        """Return the links up from each leaf and down to it, then those between spines and core switches."""
        return [
            Section(switches * links, self.hop_latency_s, speed, partial(_name, direction, level, links))
            for level, switches, links, speed in self._stages(hosts, nics, bandwidth)
            for direction in (messages.LINK_UP, messages.LINK_DOWN)
        ]

    def routes(self, hosts: int, nics: int, bandwidth: float, src: Ids, dst: Ids) -> Ids:
        """Return up to four links: up to a spine, up to a core switch, down to a spine, down to a leaf."""
        stages = self._stages(hosts, nics, bandwidth)
        _, leaves, spines, _ = stages[0]
        from_leaf, to_leaf = self._leaf(src, nics), self._leaf(dst, nics)
        spine = dst % spines
        up, down = from_leaf * spines + spine, (leaves + to_leaf) * spines + spine
        columns = [up, down]
        if self.levels == 3:
            _, switches, cores, _ = stages[1]
            first, core = 2 * leaves * spines, dst // spines % cores
            pods = [leaf // self._leaves_per_pod(nics) * spines + spine for leaf in (from_leaf, to_leaf)]
            crosses = pods[0] != pods[1]
            above = [first + pods[0] * cores + core, first + (switches + pods[1]) * cores + core]
            columns = [up, *(np.where(crosses, links, -1) for links in above), down]
        return np.where((from_leaf != to_leaf)[:, np.newaxis], np.column_stack(columns), -1)

    def _leaf(self, port: Ids, nics: int) -> Ids:
        return port // nics // self.hosts_per_switch

    def _leaves_per_pod(self, nics: int) -> int:
        return self.switches_per_pod

    def _leaves(self, hosts: int, nics: int) -> int:
        return -(-hosts // self.hosts_per_switch)

    def _ports_per_leaf(self, nics: int) -> int:
        return self.hosts_per_switch * nics

    def _stages(self, hosts: int, nics: int, bandwidth: float) -> list[tuple[str, int, int, float]]:
        """Return for each level above the leaves: the switches below it, the links of each, and their bandwidth."""
        leaves, trunk = self._leaves(hosts, nics), self.trunk_bandwidth or bandwidth
        below = self._ports_per_leaf(nics) * bandwidth
        links, speed = _trunks(below / self.oversubscription, trunk)
        stages: list[tuple[str, int, int, float]] = [(messages.LEAF_SWITCH(), leaves, links, speed)]
        if self.levels == 3:
            per_pod = self._leaves_per_pod(nics)
            pods = -(-leaves // per_pod)
            above, faster = _trunks(per_pod * speed / self.oversubscription, trunk)
            stages.append((messages.SPINE_SWITCH(), pods * links, above, faster))
        return stages


@dataclass(frozen=True)
class RailOptimized(FatTree):
    """A rail-optimized tree. A message between different rails crosses the spines, or changes rails inside the host.

    With ``crossing`` "near", the sender hands a message to the rank of its host whose NIC is on the rail of the
    destination, over the near links (NCCL calls this PXN); with "spine", the message leaves through the sender's NIC.
    """

    crossing: str = "near"

    @property
    def kind(self) -> str:
        """The word in a network file."""
        return "rail"

    @property
    def changes_rail(self) -> bool:
        """Whether messages change rails inside the sender's host."""
        return self.crossing == "near"

    def _leaf(self, port: Ids, nics: int) -> Ids:
        return port // nics // self.hosts_per_switch * nics + port % nics

    def _leaves_per_pod(self, nics: int) -> int:
        return self.switches_per_pod * nics

    def _leaves(self, hosts: int, nics: int) -> int:
        return super()._leaves(hosts, nics) * nics

    def _ports_per_leaf(self, nics: int) -> int:
        return self.hosts_per_switch


def _trunks(total: float, trunk: float) -> tuple[int, float]:
    """Return the number of links that give a total bandwidth, each about ``trunk``, and their exact bandwidth."""
    if total == float("inf"):
        return 1, total
    links = max(1, round(total / trunk))
    return links, total / links


def _name(direction: Template, level: str, links: int, index: int) -> Message:
    switch, number = divmod(index, links)
    return direction(level=level, switch=switch, number=number)
