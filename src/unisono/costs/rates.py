"""The rates of a network, by which cost terms become seconds.

They are a few numbers, so that the ranks of a job can agree on them when they connect.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from unisono.networks import Network

PS = 1e-12
US = 1e-6
INLINE_BYTES = 32  # of a message that fits into its header (engine/include/unisono/memory.hpp)
STARTING_BYTES = 512
# The simulator knows one knee: arrays that fit into the caches of a core, and longer ones.
IN_CACHE_BYTES, KNEE_BYTES, IN_MEMORY_BYTES = 256 << 10, 6 << 20, 16 << 20
SLOWDOWN_BYTES = tuple(1 << power for power in range(14, 28, 2))  # 16 KiB to 64 MiB


class Rates(NamedTuple):
    """Seconds for each event and each byte of a path (terms.py).

    The defaults are those of a core with shared memory (machine B of docs/performance.md) and of a network of
    10 Gbit/s with TCP.
    """

    call_s: float = 0.4 * US  # of a call, before its first message
    # Ranks of a gather or scatter have different arrays: such calls take the way through Python.
    python_call_s: float = 14 * US
    near_s: float = 0.05 * US  # until a message to a near rank is seen
    fetch_s: float = 0.12 * US  # until the data of a message is seen that does not fit into its header
    far_s: float = 1.5 * US  # until a message to another host is seen, beside its time on the link
    send_s: float = 0.12 * US
    receive_s: float = 0.05 * US
    local_s: float = 0.04 * US  # of each copy or sum inside a rank, beside its bytes
    sent_byte_s: float = 62 * PS  # written into a message
    received_byte_s: float = 60 * PS  # read from a message
    reduced_byte_s: float = 10 * PS
    read_byte_s: float = 16 * PS  # from an array of the rank
    written_byte_s: float = 32 * PS  # to an array of the rank
    copied_byte_s: float = 40 * PS
    # Of the first bytes of a message (STARTING_BYTES): the processor fetches further ones ahead.
    starting_byte_s: float = 0.35e-9
    passing_byte_s: float = 0.0  # on a link inside a host; in shared memory the copies of the ranks are the link
    crossing_s: float = 8 * US  # of each message on the link of a host, beside its bytes
    crossing_byte_s: float = 1 / 1.25e9
    # Of the processor of a rank, for each byte that it exchanges with another host over TCP, sent and received.
    far_byte_s: float = 600 * PS
    # Messages between different pairs of hosts at the same time: packets are dropped and sent again (TCP).
    contended_byte_s: float = 1 / 1.25e9
    cache_bytes: float = 0.0  # of a rank; 0: the caches are not known
    beyond_cache: float = 1.0  # the factor on bytes that ranks copy where a call does not fit into the caches
    # The factors on bytes where the arrays of a call have SLOWDOWN_BYTES; interpolated between them.
    slowdown: tuple[float, ...] = (1.0,) * len(SLOWDOWN_BYTES)
    turn_s: float = 1.0 * US  # of each rank of a core, on every message that it waits for, where ranks share cores
    ranks_per_core: float = 1.0
    links: int = 1  # of a host to the others

    def as_data(self) -> dict[str, Any]:
        """Return the rates that differ from the defaults."""
        return {name: value for name, value in self._asdict().items() if value != self._field_defaults[name]}

    def slowdown_at(self, nbytes: float) -> float:
        """Return the factor on bytes that ranks copy where the arrays of a call have this number of bytes."""
        factor = self.beyond_cache if self.cache_bytes and 3 * nbytes > self.cache_bytes else 1.0
        above = bisect_right(SLOWDOWN_BYTES, nbytes)
        if above == 0 or above == len(SLOWDOWN_BYTES):
            return factor * self.slowdown[max(0, above - 1)]
        few, many = SLOWDOWN_BYTES[above - 1 : above + 1]
        part = (nbytes - few) / (many - few)
        return factor * ((1 - part) * self.slowdown[above - 1] + part * self.slowdown[above])

    @property
    def rounds_per_core(self) -> float:
        """The number of ranks that take turns on a core, at least 1."""
        return max(1.0, self.ranks_per_core)


DEFAULT = Rates()


def rates_from(data: Mapping[str, Any]) -> Rates:
    """Return the rates of a record; raise ValueError where it is not one."""
    if not isinstance(data, Mapping) or not all(_is_rate(name, value) for name, value in data.items()):
        raise ValueError(data)
    values: dict[str, Any] = {**data, "slowdown": tuple(data.get("slowdown", DEFAULT.slowdown))}
    return Rates(**values)


def _is_rate(name: str, value: Any) -> bool:
    if name == "slowdown":
        return isinstance(value, list | tuple) and len(value) == len(SLOWDOWN_BYTES) and all(map(_is_number, value))
    return name in Rates._fields and _is_number(value)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < float("inf")


def rates_for(record: Mapping[str, Any], ranks: int) -> dict[str, Any]:
    """Return the rates of a machine for a number of ranks, interpolated between the numbers that were measured.

    ``record`` has "rates" and, where several numbers of ranks were measured, "by_ranks"; both may be absent.
    """
    measured = {int(key): rates for key, rates in (record.get("by_ranks") or {}).items()}
    if not measured:
        return dict(record.get("rates", {}))
    few = max((number for number in measured if number <= ranks), default=min(measured))
    many = min((number for number in measured if number >= ranks), default=max(measured))
    if few == many:
        return dict(measured[few])
    part = (ranks - few) / (many - few)
    return _between(rates_from(measured[few]), rates_from(measured[many]), part).as_data()


def _between(few: Rates, many: Rates, part: float) -> Rates:
    def mixed(less: float, more: float) -> float:
        return (1 - part) * less + part * more

    single = {
        name: mixed(getattr(few, name), getattr(many, name))
        for name in Rates._fields
        if name not in ("slowdown", "links")
    }
    slowdown = tuple(mixed(less, more) for less, more in zip(few.slowdown, many.slowdown, strict=True))
    return few._replace(**single, slowdown=slowdown)  # type: ignore[arg-type]


def network_of(rates: Rates, ranks: int, cores: int, source: str = "") -> Network:
    """Return the network of the simulator for ``ranks`` ranks on one host with these rates.

    The simulator knows no cores: where ranks share them, everything takes as many times longer as there are ranks on
    a core, and a message waits for their turns. ``source`` says where the rates come from.
    """
    from unisono.networks import Endpoint, Near, Network

    turns = max(1.0, ranks / cores)
    # The simulator does not look at the arrays of a rank: a send reads one, and a receive writes one or adds to it.
    slow, slower = rates.slowdown_at(IN_CACHE_BYTES), rates.slowdown_at(IN_MEMORY_BYTES)
    sent_s = slow * (rates.sent_byte_s + rates.read_byte_s)
    received_s = slow * (rates.received_byte_s + rates.written_byte_s)
    reduced_s = max(0.0, slow * (rates.reduced_byte_s + rates.read_byte_s - rates.written_byte_s))
    endpoint = Endpoint(
        send_overhead_s=turns * rates.send_s, receive_overhead_s=turns * rates.receive_s,
        send_s_per_byte=turns * sent_s, receive_s_per_byte=turns * received_s, reduce_s_per_byte=turns * reduced_s,
        copy_s_per_byte=turns * slow * rates.copied_byte_s,
        call_overhead_s=rates.call_s, inline_bytes=INLINE_BYTES, fetch_s=rates.fetch_s, ports=ranks,
        cache_bytes=KNEE_BYTES, beyond_cache=max(1.0, slower / slow),
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
        fetch_s=endpoint.fetch_s,
        far_s=nics.latency_s + _fabric_latency_s(network),
        send_s=endpoint.send_overhead_s,
        receive_s=endpoint.receive_overhead_s,
        local_s=0.0,
        sent_byte_s=endpoint.send_s_per_byte,
        received_byte_s=endpoint.receive_s_per_byte,
        read_byte_s=0.0,
        written_byte_s=0.0,
        starting_byte_s=0.0,
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
