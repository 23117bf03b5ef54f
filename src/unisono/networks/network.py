"""A network: hosts with ranks, the links inside a host, the NICs, and the fabric between hosts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from unisono.errors import UsageError
from unisono.networks import messages
from unisono.networks.endpoint import Endpoint
from unisono.networks.fabrics import Fabric, Switch
from unisono.networks.links import Ids, LinkTable
from unisono.networks.near import Near
from unisono.networks.nics import Nics
from unisono.networks.protocols import Protocol


@dataclass(frozen=True)
class Network:
    """The machine model of the simulator. It knows ranks, links and routes, and nothing of schedules.

    Rank ``r`` runs on host ``r // ranks_per_host``. A message between ranks of one host uses the links of ``near``; a
    message between hosts leaves through a NIC, crosses the ``fabric``, and arrives through a NIC. ``hosts`` is None
    where the network has any number of hosts.

    The costs are those of long messages; ``protocols`` are other ways to send messages, and ``variants`` the networks
    that they make.

    ``title`` (and ``title_zh``, in Chinese) describes the network in a few words, and ``source`` says where its
    numbers come from.
    """

    name: str
    title: str = ""
    title_zh: str = ""
    source: str = ""
    hosts: int | None = None
    ranks_per_host: int = 1
    endpoint: Endpoint = field(default_factory=Endpoint)
    near: Near = field(default_factory=Near)
    nics: Nics = field(default_factory=Nics)
    fabric: Fabric = field(default_factory=Switch)
    protocols: tuple[Protocol, ...] = ()

    @property
    def size(self) -> int | None:
        """The number of ranks that fit (None: any number)."""
        hosts = [most for most in (self.hosts, self.fabric.most_hosts()) if most is not None]
        return min(hosts) * self.ranks_per_host if hosts else None

    def hosts_of(self, size: int) -> int:
        """Return the number of hosts that ``size`` ranks use; raise UsageError where they do not fit."""
        if size < 1 or (self.size is not None and size > self.size):
            raise UsageError(messages.TOO_MANY_RANKS(network=self.name, most=self.size or "any number", size=size))
        return -(-size // self.ranks_per_host)

    def host_ranks(self, size: int) -> tuple[tuple[int, ...], ...]:
        """Return the ranks of each host that ``size`` ranks use; raise UsageError where they do not fit."""
        per_host = self.ranks_per_host
        return tuple(
            tuple(range(host * per_host, min((host + 1) * per_host, size))) for host in range(self.hosts_of(size))
        )

    def for_size(self, size: int) -> Network:
        """Return the part of this network that ``size`` ranks use; raise UsageError where they do not fit."""
        return replace(self, hosts=self.hosts_of(size))

    def variants(self) -> tuple[Network, ...]:
        """Return this network and the networks of its protocols; a call uses one of them for all its messages."""
        return (replace(self, protocols=()), *(self._with(protocol) for protocol in self.protocols))

    def for_messages(self, size: int, nbytes: float) -> Network:
        """Return the variant on which a message of ``nbytes`` arrives first.

        Where there are several hosts, it passes from one rank of a host to another, and then to another host.
        """
        far = size > self.ranks_per_host

        def seconds(network: Network) -> float:
            links = [network.near] * (not far or self.ranks_per_host > 1) + [network.nics] * far
            return sum(each.latency_s + nbytes / each.bandwidth for each in links)

        return min(self.variants(), key=seconds) if self.protocols else self

    def _with(self, protocol: Protocol) -> Network:
        near, nics, part = self.near, self.nics, protocol.efficiency
        far_part = part if protocol.far_efficiency is None else protocol.far_efficiency
        return replace(
            self,
            name=f"{self.name} {protocol.name}",
            endpoint=replace(self.endpoint, call_overhead_s=protocol.call_overhead_s),
            near=replace(near, latency_s=protocol.near_latency_s, bandwidth=near.bandwidth * part),
            nics=replace(nics, latency_s=protocol.far_latency_s, bandwidth=nics.bandwidth * far_part),
            protocols=(),
        )

    def links(self, size: int) -> LinkTable:
        """Return all directed links that ``size`` ranks can use."""
        hosts = self.hosts_of(size)
        near = self.near.sections(hosts, self.ranks_per_host)
        between = self.nics.sections(hosts) + self.fabric.sections(hosts, self.nics.count, self.nics.bandwidth)
        return LinkTable(near + between)

    def routes(self, size: int, src: npt.ArrayLike, dst: npt.ArrayLike) -> Ids:
        """Return the links from each rank of ``src`` to the rank of ``dst`` at the same index.

        The result has one row for each pair: the ids of the links in order, then -1. The row of a rank to itself
        is empty.
        """
        source, target = np.asarray(src, dtype=np.int64), np.asarray(dst, dtype=np.int64)
        hosts, per_host = self.hosts_of(size), self.ranks_per_host
        inside = source // per_host == target // per_host
        far = np.flatnonzero(~inside)
        near = np.flatnonzero(inside & (source != target))
        crossing = self._far_routes(hosts, source[far], target[far])
        staying = self.near.routes(hosts, per_host, source[near], target[near])
        width = max(crossing.shape[1] if len(far) else 0, staying.shape[1] if len(near) else 0)
        routes = np.full((len(source), width), -1, dtype=np.int64)
        if len(far):
            routes[far, : crossing.shape[1]] = crossing
        if len(near):
            routes[near, : staying.shape[1]] = staying
        return routes

    def _far_routes(self, hosts: int, source: Ids, target: Ids) -> Ids:
        nics, per_host = self.nics, self.ranks_per_host
        leaving, arriving = nics.ports(source, per_host), nics.ports(target, per_host)
        before = []
        if self.fabric.changes_rail:
            leaving = leaving - leaving % nics.count + arriving % nics.count
            before = [self._to_port(hosts, source, leaving)]
        first = sum(section.count for section in self.near.sections(hosts, per_host))
        fabric = first + sum(section.count for section in nics.sections(hosts))
        middle = self.fabric.routes(hosts, nics.count, nics.bandwidth, leaving, arriving)
        middle = np.where(middle < 0, -1, middle + fabric)
        routes = np.column_stack([*before, leaving + first, middle, nics.into(arriving, hosts) + first])
        if (routes < 0).any():  # move the ids of each row to the front
            order = np.argsort(routes < 0, axis=1, kind="stable")
            routes = np.take_along_axis(routes, order, axis=1)
        return routes

    def _to_port(self, hosts: int, source: Ids, port: Ids) -> Ids:
        """Return the near links from each rank to the first rank that uses a port of the same host."""
        per_host = self.ranks_per_host
        host, nic = np.divmod(port, self.nics.count)
        owner = host * per_host + -(-nic * per_host // self.nics.count)
        links = self.near.routes(hosts, per_host, source, owner)
        stays = self.nics.ports(source, per_host) == port
        return np.where(stays[:, np.newaxis], -1, links)

    def to_toml(self) -> str:
        """Return the text of a network file; reading it gives an equal network."""
        from unisono.networks.writing import to_toml  # it imports this module

        return to_toml(self)

    @cached_property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that two networks share where everything but their texts is equal."""
        return sha256(repr(replace(self, name="", title="", title_zh="", source="")).encode()).hexdigest()[:16]
