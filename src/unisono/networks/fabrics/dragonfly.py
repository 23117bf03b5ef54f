r"""Groups of routers: each router has a link to every other router of its group, each group to every other group.

::

    group 0                  group 1
    R0 --- R1 ============= R0 --- R1        ===  links_per_pair cables between two groups
     \    /  \\           // \    /          ---  local links
      \  /    \\         //   \  /
       R2      == group 2      R2
      /  \
    hosts                                    hosts_per_router

Routing is minimal and static: local link to the router that has the cable, cable, local link. The port of the
destination selects one of the ``links_per_pair`` cables (``port mod links_per_pair``). Cable ``k`` from group g to
group h is attached to router ``((h - g - 1) mod groups * links_per_pair + k) mod routers_per_group`` of group g.
Adaptive routing, which real machines have, spreads messages better than this.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unisono.networks import messages
from unisono.networks.links import Ids, Section


@dataclass(frozen=True)
class Dragonfly:
    """A dragonfly. The bandwidth of local and global links is that of a NIC unless it is given.

    Each local link adds ``hop_latency_s``, each global link ``global_latency_s`` (None: the same).
    """

    hosts_per_router: int = 4
    routers_per_group: int = 8
    links_per_pair: int = 1
    groups: int | None = None
    local_bandwidth: float | None = None
    global_bandwidth: float | None = None
    hop_latency_s: float = 0.0
    global_latency_s: float | None = None

    @property
    def kind(self) -> str:
        """The word in a network file."""
        return "dragonfly"

    @property
    def changes_rail(self) -> bool:
        """Messages do not change rails inside a host."""
        return False

    def most_hosts(self) -> int | None:
        """Return the number of hosts of all groups (None: there are as many groups as the hosts need)."""
        return None if self.groups is None else self.groups * self.routers_per_group * self.hosts_per_router

    def sections(self, hosts: int, nics: int, bandwidth: float) -> list[Section]:
        """Return the local links, then the global links."""
        groups, routers, cables = self._groups(hosts), self.routers_per_group, self.links_per_pair
        across = self.hop_latency_s if self.global_latency_s is None else self.global_latency_s

        def local(index: int) -> str:
            group, source, target = index // routers**2, index // routers % routers, index % routers
            return messages.LOCAL_CABLE(source=source, target=target, group=group)

        def cable(index: int) -> str:
            source, target = divmod(index // cables, groups)
            return messages.GLOBAL_CABLE(number=index % cables, source=source, target=target)

        return [
            Section(groups * routers**2, self.hop_latency_s, self.local_bandwidth or bandwidth, local),
            Section(groups**2 * cables, across, self.global_bandwidth or bandwidth, cable),
        ]

    def routes(self, hosts: int, nics: int, bandwidth: float, src: Ids, dst: Ids) -> Ids:
        """Return up to three links: local, global, local."""
        groups, routers, cables = self._groups(hosts), self.routers_per_group, self.links_per_pair
        source, target = src // nics // self.hosts_per_router, dst // nics // self.hosts_per_router
        (g, a), (h, b) = np.divmod(source, routers), np.divmod(target, routers)
        cable = dst % cables
        leaving = ((h - g - 1) % groups * cables + cable) % routers
        arriving = ((g - h - 1) % groups * cables + cable) % routers
        crosses = g != h
        first_stop = np.where(crosses, leaving, b)
        first = np.where(a != first_stop, g * routers**2 + a * routers + first_stop, -1)
        across = np.where(crosses, groups * routers**2 + (g * groups + h) * cables + cable, -1)
        last = np.where(crosses & (arriving != b), h * routers**2 + arriving * routers + b, -1)
        return np.column_stack([first, across, last])

    def _groups(self, hosts: int) -> int:
        return self.groups or -(-hosts // (self.routers_per_group * self.hosts_per_router))
