"""The links between the ranks of one host.

============  =====================================================  ===============================
kind          links                                                  route from a to b
============  =====================================================  ===============================
``memory``    one for each host, shared by all messages in it        memory
``switch``    one out of each rank and one into it                   out of a, into b
``mesh``      one for each ordered pair of ranks                     a to b
============  =====================================================  ===============================

With half duplex, the two links of a rank, or of a pair of ranks, are the same link.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unisono.networks import messages
from unisono.networks.links import Ids, Section

MEMORY, SWITCH, MESH = KINDS = ("memory", "switch", "mesh")


@dataclass(frozen=True)
class Near:
    """The links inside a host. ``latency_s`` is that of a message between two ranks, over all its links together.

    A switch that reduces and multicasts (NVLink SHARP) has a ``reduce_bandwidth``: the rate at which the vectors of
    all ranks pass through it in an all-reduce that the switch performs (None: the switch does not reduce). Such an
    all-reduce takes ``reduce_latency_s`` in addition.
    """

    kind: str = MEMORY
    latency_s: float = 0.0
    bandwidth: float = float("inf")
    full_duplex: bool = True
    reduce_bandwidth: float | None = None
    reduce_latency_s: float = 0.0

    @property
    def hops(self) -> int:
        """The number of links on a route."""
        return 2 if self.kind == SWITCH else 1

    def sections(self, hosts: int, per_host: int) -> list[Section]:
        """Return the links of ``hosts`` hosts with ``per_host`` ranks each."""
        if self.kind == MEMORY:
            return [Section(hosts, self.latency_s, self.bandwidth, lambda host: messages.MEMORY_OF_HOST(host=host))]
        if self.kind == MESH:
            pairs = per_host * per_host

            def name(index: int) -> str:
                host, pair = divmod(index, pairs)
                source, target = (host * per_host + local for local in divmod(pair, per_host))
                return messages.NEAR_PAIR(source=source, target=target)

            return [Section(hosts * pairs, self.latency_s, self.bandwidth, name)]
        half = self.latency_s / 2
        out = Section(hosts * per_host, half, self.bandwidth, lambda rank: messages.NEAR_OUT(rank=rank))
        if not self.full_duplex:
            return [Section(hosts * per_host, half, self.bandwidth, lambda rank: messages.NEAR_OF(rank=rank))]
        return [out, Section(hosts * per_host, half, self.bandwidth, lambda rank: messages.NEAR_INTO(rank=rank))]

    def routes(self, hosts: int, per_host: int, src: Ids, dst: Ids) -> Ids:
        """Return the links from ``src`` to ``dst``, ranks of the same host, in columns."""
        if self.kind == MEMORY:
            return (src // per_host)[:, np.newaxis]
        if self.kind == MESH:
            a, b = src % per_host, dst % per_host
            if not self.full_duplex:
                a, b = np.minimum(a, b), np.maximum(a, b)
            return ((src // per_host) * per_host * per_host + a * per_host + b)[:, np.newaxis]
        into = dst + (hosts * per_host if self.full_duplex else 0)
        return np.stack([src, into], axis=1)
