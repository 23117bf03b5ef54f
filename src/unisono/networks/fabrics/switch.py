r"""One switch that connects every host::

    host 0   host 1   host 2
       \        |        /
        ----- switch ----

The switch forwards at full speed: messages meet only on the links of the hosts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unisono.networks.links import Ids, Section


@dataclass(frozen=True)
class Switch:
    """One switch; it adds no links."""

    @property
    def kind(self) -> str:
        """The word in a network file."""
        return "switch"

    @property
    def changes_rail(self) -> bool:
        """Messages do not change rails inside a host."""
        return False

    def most_hosts(self) -> int | None:
        """Return None: the switch has as many ports as there are hosts."""
        return None

    def sections(self, hosts: int, nics: int, bandwidth: float) -> list[Section]:
        """Return no links."""
        return []

    def routes(self, hosts: int, nics: int, bandwidth: float, src: Ids, dst: Ids) -> Ids:
        """Return routes without links."""
        return np.empty((len(src), 0), dtype=np.int64)
