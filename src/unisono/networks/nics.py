"""The network interfaces (NICs) of a host: each is shared by some of its ranks, or belongs to one.

The ranks of a host are dealt to its NICs in blocks: with 8 ranks and 4 NICs, ranks 0 and 1 use NIC 0. A NIC has a
link out of the host and a link into it; with half duplex they are the same link.
"""

from __future__ import annotations

from dataclasses import dataclass

from unisono.message import Message
from unisono.networks import messages
from unisono.networks.links import Ids, Section


@dataclass(frozen=True)
class Nics:
    """The NICs of a host, ``count`` of them, with ``bandwidth`` bytes per second each.

    ``latency_s`` is that of a message between two hosts that are attached to the same switch.
    """

    count: int = 1
    latency_s: float = 0.0
    bandwidth: float = float("inf")
    full_duplex: bool = True

    def sections(self, hosts: int) -> list[Section]:
        """Return the links of the NICs of ``hosts`` hosts."""
        total, half = hosts * self.count, self.latency_s / 2
        if not self.full_duplex:
            return [Section(total, half, self.bandwidth, lambda port: messages.NIC_OF(port=self._name(port)))]
        return [
            Section(total, half, self.bandwidth, lambda port: messages.NIC_OUT(port=self._name(port))),
            Section(total, half, self.bandwidth, lambda port: messages.NIC_INTO(port=self._name(port))),
        ]

    def ports(self, rank: Ids, per_host: int) -> Ids:
        """Return the port that each rank uses: the number of its NIC among the NICs of all hosts."""
        return (rank // per_host) * self.count + (rank % per_host) * self.count // per_host

    def into(self, port: Ids, hosts: int) -> Ids:
        """Return the link into each port; the link out of a port has the number of the port."""
        return port + hosts * self.count if self.full_duplex else port

    def _name(self, port: int) -> Message:
        host, nic = divmod(port, self.count)
        return messages.PORT_OF_NIC(host=host, nic=nic) if self.count > 1 else messages.PORT_OF_HOST(host=host)
