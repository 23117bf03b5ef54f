"""The interface of a fabric: the links between switches, and the route between two ports."""

from __future__ import annotations

from typing import Protocol

from unisono.networks.links import Ids, Section


class Fabric(Protocol):
    """The switches between hosts. A port is a NIC: port ``host * nics + nic``.

    The links of the NICs are not part of the fabric: a route begins at the first switch and ends at the last.
    """

    @property
    def kind(self) -> str:
        """The word for this kind of fabric in a network file."""

    @property
    def changes_rail(self) -> bool:
        """Whether a message moves to the rank with the destination's NIC number before it leaves the host."""

    def most_hosts(self) -> int | None:
        """Return the number of hosts that fit (None: any number)."""

    def sections(self, hosts: int, nics: int, bandwidth: float) -> list[Section]:
        """Return the links between switches, where each of the ``nics`` of a host has ``bandwidth``."""

    def routes(self, hosts: int, nics: int, bandwidth: float, src: Ids, dst: Ids) -> Ids:
        """Return the links from port ``src`` to port ``dst`` of another host, in columns; -1 where there is none."""
