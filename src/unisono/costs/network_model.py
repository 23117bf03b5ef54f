"""The costs of a network of the simulator, as the few numbers by which an algorithm is chosen for it.

The ranks of a job agree on them when they connect, so they are plain numbers that travel as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from unisono.costs.stored_terms import ALL, HALF, ONE

if TYPE_CHECKING:
    from unisono.networks import Network

MOST_RANKS = 8192  # for which latencies are looked up
MOST_ROUTES = 64  # of which the mean latency is taken
NEVER = float("inf")


class Costs(NamedTuple):
    """Seconds of a network, or of one of its protocols; per event, and per byte."""

    call_s: float = 0.0
    near_s: float = 0.0
    far_s: tuple[float, ...] = (0.0,)  # on 2, 4, 8, ... hosts
    near_byte_s: float = 0.0
    far_byte_s: float = 0.0  # on a NIC
    # The latency and the rate by which one of several protocols is selected: on one host, and on several.
    near_message: tuple[float, float] = (0.0, 0.0)
    far_message: tuple[float, float] = (0.0, 0.0)

    def on_hosts(self, hosts: int) -> float:
        """Return the latency between hosts, if there are this many."""
        return self.far_s[min(max(0, (hosts - 1).bit_length() - 1), len(self.far_s) - 1)]


class Processor(NamedTuple):
    """Seconds of the processor of a rank, as in a network file (networks/endpoint.py)."""

    send_s: float = 0.0
    receive_s: float = 0.0
    sent_byte_s: float = 0.0
    received_byte_s: float = 0.0
    reduced_byte_s: float = 0.0
    copied_byte_s: float = 0.0
    inline_bytes: float = NEVER
    fetch_s: float = 0.0
    eager_bytes: float = NEVER
    eager_byte_s: float = 0.0
    rendezvous_s: float = 0.0
    rendezvous_trips: float = 0.0
    exchange_bytes: float = NEVER
    cache_bytes: float = NEVER
    beyond_cache: float = 1.0
    segment_bytes: float = 0.0  # 0: as the engine cuts chunks
    copies_input: bool = False


class NetworkModel(NamedTuple):
    """A network: its processors, the costs of each of its protocols, and its NICs, at most one for each rank.

    ``shares_memory``: the ranks of a host share its memory, so that they have no ports.
    """

    processor: Processor = Processor()
    protocols: tuple[Costs, ...] = (Costs(),)
    nics_per_rank: float = 1.0
    shares_memory: bool = False

    def as_data(self) -> dict[str, Any]:
        """Return the numbers as JSON has them."""
        return {
            "processor": [each if each < NEVER else None for each in self.processor],
            "protocols": [list(each) for each in self.protocols],
            "nics_per_rank": self.nics_per_rank, "shares_memory": self.shares_memory,
        }  # fmt: skip

    @property
    def nics(self) -> str:
        """Which of the stored terms apply: one NIC for each host, for every two ranks, or for each rank."""
        return ALL if self.nics_per_rank == 1 else HALF if self.nics_per_rank >= 0.5 else ONE

    def nic_share(self, ranks: int) -> float:
        """Return the NICs of a host with this number of ranks in the stored terms, divided by their number here."""
        here = max(1.0, self.nics_per_rank * ranks)
        return {ALL: float(ranks), HALF: max(1.0, ranks / 2), ONE: 1.0}[self.nics] / here

    def with_link_rate(self, link_rate: float, ranks: int) -> NetworkModel:
        """Return the network whose hosts, of ``ranks`` ranks each, send ``link_rate`` bytes per second."""
        byte_s = max(1.0, self.nics_per_rank * ranks) / link_rate
        return self._replace(protocols=tuple(each._replace(far_byte_s=byte_s) for each in self.protocols))


def model_from(data: Mapping[str, Any]) -> NetworkModel:
    """Return the network of a record that ``as_data`` has made."""

    def costs(numbers: Sequence[Any]) -> Costs:
        return Costs._make(tuple(each) if isinstance(each, list | tuple) else each for each in numbers)

    processor = Processor._make(NEVER if each is None else each for each in data["processor"])
    protocols = tuple(costs(each) for each in data["protocols"])
    return NetworkModel(processor, protocols, data["nics_per_rank"], data["shares_memory"])


def model_of(network: Network) -> NetworkModel:
    """Return the numbers of a network."""
    from unisono.networks.near import MEMORY

    end = network.endpoint
    processor = Processor(
        send_s=end.send_overhead_s, receive_s=end.receive_overhead_s, sent_byte_s=end.send_s_per_byte,
        received_byte_s=end.receive_s_per_byte, reduced_byte_s=end.reduce_s_per_byte,
        copied_byte_s=end.copy_s_per_byte, inline_bytes=_bytes(end.inline_bytes), fetch_s=end.fetch_s,
        eager_bytes=_bytes(end.eager_bytes), eager_byte_s=end.eager_s_per_byte, rendezvous_s=end.rendezvous_s,
        rendezvous_trips=end.rendezvous_trips, exchange_bytes=_bytes(end.exchange_bytes),
        cache_bytes=_bytes(end.cache_bytes), beyond_cache=end.beyond_cache,
        segment_bytes=float(end.segment_bytes or 0), copies_input=end.copies_input,
    )  # fmt: skip
    protocols = tuple(_costs(each) for each in network.variants())
    per_rank = min(1.0, network.nics.count / network.ranks_per_host)
    return NetworkModel(processor, protocols, per_rank, network.near.kind == MEMORY)


def _bytes(limit: int | None) -> float:
    return NEVER if limit is None else float(limit)


def _costs(network: Network) -> Costs:
    near, nics = network.near, network.nics
    latencies, byte_s = _far_costs(network)
    return Costs(
        call_s=network.endpoint.call_overhead_s, near_s=near.latency_s, far_s=latencies,
        near_byte_s=1 / near.bandwidth, far_byte_s=byte_s, near_message=(near.latency_s, 1 / near.bandwidth),
        far_message=(nics.latency_s, 1 / nics.bandwidth),
    )  # fmt: skip


def _far_costs(network: Network) -> tuple[tuple[float, ...], float]:
    """Return the mean latency from the first host to the others, on 2, 4, 8, ... hosts, and the seconds per byte.

    The narrowest link of a route counts.
    """
    import numpy as np

    latencies, byte_s = [network.nics.latency_s], 1 / network.nics.bandwidth
    per_host = network.ranks_per_host
    most = min(network.size or MOST_RANKS, max(MOST_RANKS, 2 * per_host)) // per_host
    for power in range(1, most.bit_length()):
        hosts = 1 << power
        others = np.unique(np.linspace(1, hosts - 1, MOST_ROUTES).astype(np.int64))
        routes = network.routes(hosts * per_host, np.zeros_like(others), others * per_host)
        links, used = network.links(hosts * per_host), routes >= 0
        latencies[power - 1 :] = [float(np.where(used, links.latency_s[routes], 0.0).sum(axis=1).mean())]
        byte_s = max(byte_s, 1 / float(np.where(used, links.bandwidth[routes], np.inf).min()))
    return tuple(latencies), byte_s
