"""The rates of a network, by which cost terms become seconds.

They are a few numbers, so that the ranks of a job can agree on them when they connect.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from unisono.networks import Network

PS = 1e-12
US = 1e-6


class Rates(NamedTuple):
    """Seconds for each event and each byte of a path (terms.py).

    The defaults are those of a core with shared memory (machine B of docs/performance.md) and of a network of
    10 Gbit/s with TCP.
    """

    call_s: float = 0.4 * US  # of a call, before its first message
    # Ranks of a gather or scatter have different arrays: such calls take the way through Python.
    python_call_s: float = 14 * US
    near_s: float = 0.155 * US  # until a message to a near rank is seen
    far_s: float = 1.5 * US  # until a message to another host is seen, beside its time on the link
    send_s: float = 0.13 * US
    receive_s: float = 0.065 * US
    local_s: float = 0.065 * US  # of each copy or sum inside a rank, beside its bytes
    sent_byte_s: float = 60 * PS
    received_byte_s: float = 100 * PS
    reduced_byte_s: float = 20 * PS
    copied_byte_s: float = 40 * PS
    passing_byte_s: float = 0.0  # on a link inside a host; in shared memory the copies of the ranks are the link
    crossing_s: float = 8 * US  # of each message on the link of a host, beside its bytes
    crossing_byte_s: float = 1 / 1.25e9
    # Of the processor of a rank, for each byte that it exchanges with another host over TCP, sent and received.
    far_byte_s: float = 600 * PS
    # Messages between different pairs of hosts at the same time: packets are dropped and sent again (TCP).
    contended_byte_s: float = 1 / 1.25e9
    cache_bytes: float = 0.0  # of a rank; 0: the caches are not known
    beyond_cache: float = 1.0  # the factor on bytes that ranks copy where a call does not fit into the caches
    turn_s: float = 1.0 * US  # of each rank of a core, on every message that it waits for, where ranks share cores
    ranks_per_core: float = 1.0
    links: int = 1  # of a host to the others

    def as_data(self) -> dict[str, float]:
        """Return the rates that differ from the defaults."""
        return {name: value for name, value in self._asdict().items() if value != self._field_defaults[name]}

    @property
    def rounds_per_core(self) -> float:
        """The number of ranks that take turns on a core, at least 1."""
        return max(1.0, self.ranks_per_core)


DEFAULT = Rates()


def rates_from(data: Mapping[str, Any]) -> Rates:
    """Return the rates of a record; raise ValueError where it is not one."""
    if not isinstance(data, Mapping) or not all(
        name in Rates._fields and type(value) in (int, float) and 0 <= value < float("inf")
        for name, value in data.items()
    ):
        raise ValueError(data)
    return Rates(**data)


def rates_for(record: Mapping[str, Any], ranks: int) -> dict[str, float]:
    """Return the rates of a machine for a number of ranks: those that were measured with a similar number.

    ``record`` has "rates" and, where several numbers of ranks were measured, "by_ranks"; both may be absent.
    """
    measured = record.get("by_ranks") or {}
    if not measured:
        return dict(record.get("rates", {}))
    nearest = min(measured, key=lambda key: (max(int(key), ranks) / min(int(key), ranks), int(key)))
    return dict(measured[nearest])


def network_of(rates: Rates, ranks: int, cores: int, source: str = "") -> Network:
    """Return the network of the simulator for ``ranks`` ranks on one host with these rates.

    The simulator knows no cores: where ranks share them, everything takes as many times longer as there are ranks on
    a core, and a message waits for their turns. ``source`` says where the rates come from.
    """
    from unisono.networks import Endpoint, Near, Network

    turns = max(1.0, ranks / cores)
    endpoint = Endpoint(
        send_overhead_s=turns * rates.send_s, receive_overhead_s=turns * rates.receive_s,
        send_s_per_byte=turns * rates.sent_byte_s, receive_s_per_byte=turns * rates.received_byte_s,
        reduce_s_per_byte=turns * rates.reduced_byte_s, copy_s_per_byte=turns * rates.copied_byte_s,
        call_overhead_s=rates.call_s, cache_bytes=int(rates.cache_bytes) or None, beyond_cache=rates.beyond_cache,
        ports=ranks,
    )  # fmt: skip
    latency_s = rates.near_s + (turns * rates.turn_s if turns > 1 else 0.0)
    return Network(
        name="this-machine", title="this machine", title_zh="本机", source=source, hosts=1, ranks_per_host=ranks,
        endpoint=endpoint, near=Near(kind="memory", latency_s=latency_s),
    )  # fmt: skip


def rates_of(network: Network) -> Rates:
    """Return the rates of a network of the simulator."""
    endpoint, near, nics = network.endpoint, network.near, network.nics
    wire_s = 1 / near.bandwidth
    return Rates(
        call_s=endpoint.call_overhead_s,
        python_call_s=endpoint.call_overhead_s,
        near_s=near.latency_s,
        far_s=nics.latency_s + _fabric_latency_s(network),
        send_s=endpoint.send_overhead_s,
        receive_s=endpoint.receive_overhead_s,
        local_s=0.0,
        sent_byte_s=endpoint.send_s_per_byte,
        received_byte_s=endpoint.receive_s_per_byte,
        reduced_byte_s=endpoint.reduce_s_per_byte,
        copied_byte_s=endpoint.copy_s_per_byte,
        passing_byte_s=wire_s,
        crossing_s=0.0,
        crossing_byte_s=1 / nics.bandwidth,
        far_byte_s=0.0,  # bytes that a rank sends and receives cost the same everywhere
        contended_byte_s=0.0,
        cache_bytes=float(endpoint.cache_bytes or 0),
        beyond_cache=endpoint.beyond_cache if endpoint.cache_bytes else 1.0,
        turn_s=0.0,
        links=nics.count,
    )


def _fabric_latency_s(network: Network) -> float:
    """Return the latency between the first and the last host of the network, beside that of their NICs."""
    hosts = 2 if network.hosts is None else network.hosts
    if hosts < 2:
        return 0.0
    size = hosts * network.ranks_per_host
    route = network.routes(size, [0], [size - 1])[0]
    latency_s = network.links(size).latency_s
    return max(0.0, float(sum(latency_s[link] for link in route if link >= 0)) - network.nics.latency_s)
