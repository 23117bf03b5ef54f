"""The rendezvous of a process group on several hosts: what its ranks tell each other through torch's store.

Rank 0 first expects all ranks on its host (store_rendezvous.py). A rank on another host writes an **announcement** to
the store: its host, and an address of it. Then rank 0 sends the ranks that have connected on its host away, listens
on a TCP port, and writes its addresses to the store. All ranks meet there (bootstrap/network_rendezvous.py), with the
secret in the store as their token. A group whose ranks are all on one host opens no port, and a group of ranks that
have a courier in common already, in most programs that of the default group, opens none for longer than its
rendezvous.

Every process that reaches the port of a TCPStore can read the token and replace the addresses. The authentication is
therefore only as strong as the protection of the store, as for every backend of torch (docs/adr/0041).
"""

from __future__ import annotations

import ipaddress
import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from socket import AF_INET, AF_INET6
from typing import Any, NamedTuple

from unisono.bootstrap import network_messages
from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.hosts import hosts_of
from unisono.bootstrap.interfaces import is_loopback, list_interfaces, select_address, source_address
from unisono.bootstrap.job_resources import CourierOffer
from unisono.bootstrap.locality import host_info, incompatibility
from unisono.bootstrap.membership import Link
from unisono.bootstrap.network_options import TCP, NetworkPlan
from unisono.bootstrap.rendezvous import RendezvousHooks
from unisono.comm.links import link_rate_in_config
from unisono.comm.machine import load_tuning
from unisono.errors import CommError, UsageError
from unisono.torch_backend import messages
from unisono.torch_backend.options import Options

FAR = "unisono/far/"  # and the name of the rendezvous: the announcement of a rank on another host
NETWORK = "unisono/network/"  # and the name of the rendezvous: rank 0's addresses
SHORTEST_S = 0.1  # for a rendezvous over the network that begins when the time is almost over


@dataclass(frozen=True)
class Announcement:
    """A rank on another host than rank 0."""

    rank: int
    host: dict[str, str]  # locality.host_info()
    address: str  # of that host; empty if it is not known which one to use


def moved() -> CommError:
    """Return the error that ends a rendezvous on one host because ranks are on other hosts."""
    return CommError(network_messages.MOVED())


def is_moved(error: CommError) -> bool:
    """Return whether a rendezvous continues over the network."""
    return error.id == network_messages.MOVED.id


def is_far(own: dict[str, str], other: dict[str, str]) -> bool:
    """Return whether two ranks with these identities of their hosts are on different hosts."""
    return hosts_of([own, other]).count > 1


def announce(store: Any, name: str, rank: int, own: dict[str, str], rank_0: dict[str, str], options: Options) -> None:
    """Tell rank 0 that this rank is on another host; UsageError if this host has no network."""
    reachable(usable_addresses(), rank, own, rank_0)
    address = own_address(options.interface, [store_host(store)])
    store.set(FAR + name, json.dumps({"rank": rank, "host": own, "address": address}))


def announced(store: Any, name: str) -> Announcement | None:
    """Return the announcement of a rank on another host, if there is one."""
    if not store.check([FAR + name]):
        return None
    content = store.get(FAR + name)
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        message = json.loads(content)
        host = {part: message["host"][part] for part in host_info()}
        if isinstance(message["rank"], int) and all(isinstance(text, str) for text in host.values()):
            if message["address"]:
                ipaddress.ip_address(message["address"])
            return Announcement(message["rank"], host, message["address"])
    raise foreign_content(FAR + name, content)


def foreign_content(key: str, content: bytes) -> CommError:
    """Return the error for content of the store that no rank writes."""
    return CommError(messages.FOREIGN_STORE_CONTENT(call="init_process_group", key=key, content=repr(content[:80])))


def store_host(store: Any) -> str:
    """Return the host of a TCPStore, or MASTER_ADDR; empty if neither is known."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    return str(getattr(store, "host", "") or os.environ.get("MASTER_ADDR", ""))


def own_address(interface: str | None, others: Sequence[str]) -> str:
    """Return the address of this host that ``interface`` stands for, or from which it reaches one of the others.

    One that only processes of this host can reach comes last. The result is empty if no other host is known.
    """
    if interface is not None:
        return select_address(interface, AF_INET, list_interfaces())
    routes = [route for other in others if other and (route := source_address(other))]
    return min(routes, key=is_loopback, default="")


def usable_addresses() -> list[str]:
    """Return the addresses of this host that others may reach; loopback addresses, for containers, come last."""
    addresses = [each.address for each in list_interfaces()]
    usable = [address for address in addresses if not ipaddress.ip_address(address).is_link_local]
    return sorted(usable, key=is_loopback)


def reachable(addresses: Sequence[str], rank: int, own: dict[str, str], rank_0: dict[str, str]) -> list[str]:
    """Return the addresses, of ``rank`` or of rank 0, that the other one may reach; UsageError if there is none."""
    found = [address for address in addresses if not is_loopback(address) or _share_network(own, rank_0)]
    if not found:
        raise UsageError(messages.INIT(problem=incompatibility(rank, own, rank_0)))
    return found


def _share_network(own: dict[str, str], other: dict[str, str]) -> bool:
    return own["kernel"] == other["kernel"] and own["network"] == other["network"]


class NetworkWelcome(RendezvousHooks):
    """The part of rank 0: it publishes its addresses while it listens. ``visit`` looks for errors of other ranks."""

    def __init__(self, visit: Any, addresses: list[str]) -> None:
        self.visit, self.addresses = visit, addresses
        self.timeout_hint = visit.timeout_hint

    def on_port(self, port: int) -> None:
        """Publish the addresses and the port."""
        self.visit.store.set(NETWORK + self.visit.name, json.dumps({"addresses": self.addresses, "port": port}))

    def poll(self) -> None:
        """Raise the error of another rank, if there is one."""
        self.visit.look_for_error()

    def on_complete(self) -> None:
        """Delete what the store holds about this rendezvous."""
        self.visit.on_complete()
        for key in (FAR, NETWORK):
            with suppress(RuntimeError):  # some stores cannot delete a key
                self.visit.store.delete_key(key + self.visit.name)


def listening_addresses(store: Any, far: Announcement, own: dict[str, str], options: Options) -> list[str]:
    """Return the addresses of rank 0: the one from which it reaches the rank that is far, or all if none is known."""
    address = own_address(options.interface, [far.address, store_host(store)])
    is_chosen = options.interface is not None or (
        address and (not is_loopback(address) or _share_network(own, far.host))
    )
    return reachable([address] if is_chosen else usable_addresses(), far.rank, far.host, own)


def published_addresses(content: bytes, key: str) -> tuple[list[str], int]:
    """Return the addresses and the port of rank 0 in the store."""
    with suppress(ValueError, TypeError, KeyError, RecursionError):
        where = json.loads(content)
        addresses = [str(ipaddress.ip_address(address)) for address in where["addresses"]]
        if type(where["port"]) is int and 0 < where["port"] < 65536:
            return addresses, where["port"]
    raise foreign_content(key, content)


class RankZero(NamedTuple):
    """The addresses of rank 0; port 0, on rank 0 itself, stands for any that is free."""

    host: str  # its name
    addresses: list[str]
    port: int = 0


@dataclass(frozen=True)
class NetworkMember:
    """A rank of a group that meets over the network."""

    identity: RankIdentity
    host: dict[str, str]
    options: Options
    timeout_s: float  # of the group
    ends_s: float  # of the rendezvous
    offers: Sequence[CourierOffer]  # couriers of other groups of this process

    def connect(self, rank_0: RankZero, name: str, token: str, hooks: RendezvousHooks) -> Link:
        """Meet the other ranks; ``name`` and ``token`` are those of the rendezvous."""
        from unisono.bootstrap.network_membership import connect_link_over_network  # not loaded by groups on one host

        # With several addresses, rank 0 listens at all of them: the name of its host is no numeric address.
        host = rank_0.addresses[0] if len(rank_0.addresses) == 1 else rank_0.host
        plan = NetworkPlan(
            host, rank_0.port, token, name, self.options.interface, self.options.ports, self.options.transport or TCP,
            self.options.tls,
        )  # fmt: skip
        left_s = max(SHORTEST_S, round(self.ends_s - time.monotonic(), 1))

        def resolve(_: str, port: int) -> list[tuple[int, tuple[object, ...]]]:
            return [(AF_INET6 if ":" in address else AF_INET, (address, port)) for address in rank_0.addresses]

        return connect_link_over_network(
            self.identity, plan, self.timeout_s, left_s, self.options.staging_bytes, load_tuning, hooks=hooks,
            host=self.host, resolve=resolve, offers=self.offers,
            link_rate=link_rate_in_config(self.options.link_rate),
        )  # fmt: skip
