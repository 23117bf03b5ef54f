"""The rendezvous of a process group on several hosts: torch's store holds the addresses of rank 0 and the token.

A group on one host never comes here. A rank that finds that rank 0 is on another host requests the network in the
store; rank 0 then listens on a TCP port and publishes it, and all ranks meet there (bootstrap/network_rendezvous.py).

Every process that reaches the port of a TCPStore can read the token and replace the address. The authentication is
therefore only as strong as the protection of the store, as for every backend of torch (docs/adr/0041).
"""

from __future__ import annotations

import ipaddress
import json
import os
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from unisono.bootstrap import network_messages
from unisono.bootstrap.environment import RankIdentity, job_trace
from unisono.bootstrap.interfaces import is_loopback, list_interfaces
from unisono.bootstrap.locality import incompatibility
from unisono.bootstrap.network_membership import connect_link_over_network
from unisono.bootstrap.network_options import NetworkPlan
from unisono.bootstrap.rendezvous import RendezvousHooks
from unisono.comm.communicator import Communicator
from unisono.comm.selection import load_table
from unisono.errors import CommError, UsageError
from unisono.message import Message
from unisono.torch_backend import messages

REQUEST = "unisono/network_request"  # the name of a rendezvous that needs the network
NETWORK = "unisono/network"  # the address and the token of rank 0


def moved() -> CommError:
    """Return the error that ends a rendezvous on one host because ranks are on other hosts."""
    return CommError(network_messages.MOVED())


def is_moved(error: CommError) -> bool:
    """Return whether a rendezvous continues over the network."""
    return error.id == network_messages.MOVED.id


def request_network(store: Any, name: str) -> None:
    """Ask rank 0 of a rendezvous to meet over the network."""
    store.set(REQUEST, name)


def is_requested(store: Any, name: str) -> bool:
    """Return whether a rank has asked for the network."""
    return bool(store.check([REQUEST])) and store.get(REQUEST) == name.encode()


@dataclass(frozen=True)
class StoreNetwork:
    """The content of the store about rank 0's TCP port."""

    rendezvous: str
    addresses: list[str]
    port: int
    token: str


def network_in(store: Any, name: str) -> StoreNetwork | None:
    """Return what rank 0 of a rendezvous has published, or None; the store may hold that of an older rendezvous."""
    if not store.check([NETWORK]):
        return None
    content = store.get(NETWORK)
    try:
        network = StoreNetwork(**json.loads(content))
        for address in network.addresses:
            ipaddress.ip_address(address)
        if type(network.port) is not int or not isinstance(network.token, str):
            raise TypeError
    except (ValueError, TypeError, RecursionError):
        message = messages.FOREIGN_STORE_CONTENT(call="init_process_group", key=NETWORK, content=repr(content[:80]))
        raise CommError(message) from None
    return network if network.rendezvous == name else None


def usable_addresses() -> list[str]:
    """Return the addresses of this host that others may reach; loopback addresses, for containers, come last."""
    addresses = [each.address for each in list_interfaces()]
    usable = [address for address in addresses if not ipaddress.ip_address(address).is_link_local]
    return sorted(usable, key=is_loopback)


def no_network(rank: int, own: dict[str, str], rank_0: dict[str, str], addresses: list[str]) -> Message | None:
    """Return why a rank cannot reach rank 0 over the network, or None; ``addresses`` are those of one of them."""
    shares_network = own["kernel"] == rank_0["kernel"] and own["network"] == rank_0["network"]
    if shares_network or any(not is_loopback(address) for address in addresses):
        return None
    return incompatibility(rank, own, rank_0)


class NetworkHost(RendezvousHooks):
    """Publishes the port of rank 0 while it listens."""

    timeout_hint = messages.HINT_INIT_TIMEOUT()

    def __init__(self, store: Any, visit: RendezvousHooks, name: str, token: str) -> None:
        self.store, self.visit, self.name, self.token = store, visit, name, token

    def on_port(self, port: int) -> None:
        """Publish the port."""
        network = {"rendezvous": self.name, "addresses": usable_addresses(), "port": port, "token": self.token}
        self.store.set(NETWORK, json.dumps(network))

    def poll(self) -> None:
        """Raise the error of another rank, if there is one."""
        self.visit.poll()

    def on_complete(self) -> None:
        """Delete the content, which all ranks have read."""
        self.visit.on_complete()
        for key in (NETWORK, REQUEST):
            with suppress(RuntimeError):  # some stores cannot delete a key
                self.store.delete_key(key)


def meet_as_rank_0(
    store: Any, visit: RendezvousHooks, name: str, size: int, timeout_s: float, staging_bytes: int
) -> Communicator:
    """Meet the other ranks over the network, as rank 0."""
    token = secrets.token_hex(32)
    plan = NetworkPlan(os.uname().nodename, 0, token, name)
    hooks = NetworkHost(store, visit, name, token)
    return _connect(0, size, plan, timeout_s, staging_bytes, hooks, {})


def meet_at_rank_0(
    network: StoreNetwork, visit: RendezvousHooks, rank: int, size: int, timeout_s: float, staging_bytes: int,
    own: dict[str, str], rank_0: dict[str, str],
) -> Communicator:  # fmt: skip
    """Meet the other ranks over the network, as a rank that has read the address of rank 0."""
    problem = no_network(rank, own, rank_0, network.addresses)
    if problem is not None:
        raise UsageError(messages.INIT(problem=problem))
    plan = NetworkPlan(rank_0["host"], network.port, network.token, network.rendezvous)
    shares_network = own["kernel"] == rank_0["kernel"] and own["network"] == rank_0["network"]
    reachable = [address for address in network.addresses if shares_network or not is_loopback(address)]

    def resolve(_: str, port: int) -> list[tuple[int, tuple[object, ...]]]:
        return [(socket.AF_INET6 if ":" in each else socket.AF_INET, (each, port)) for each in reachable]

    return _connect(rank, size, plan, timeout_s, staging_bytes, visit, {"resolve": resolve})


def _connect(
    rank: int, size: int, plan: NetworkPlan, timeout_s: float, staging_bytes: int, hooks: RendezvousHooks,
    more: dict[str, Any],
) -> Communicator:  # fmt: skip
    identity = RankIdentity(rank, size, rank, size, "alone", "", job_trace())
    link = connect_link_over_network(
        identity, plan, timeout_s, timeout_s, staging_bytes, load_table, hooks=hooks, **more
    )
    return Communicator(link)
