"""The rendezvous of ranks on several hosts: every other rank connects to rank 0 over TCP.

1. Every rank proves that it belongs to the job, lets rank 0 prove the same (network_handshake.py), and sends a hello
   with the identity of its host.
2. Rank 0 sends all ranks the map of hosts (hosts.py). A rank with far ranks opens its **courier**, which listens for
   their messages, and sends rank 0 its address. If all ranks have a courier in common already, that of an earlier
   rendezvous which knows all of them, rank 0 names it, and they use it.
3. Rank 0 sends all ranks the **table**: the addresses of all couriers, and the configuration of the job. Every rank
   computes the **tickets** with which two couriers recognize each other, from the token, which is never sent.
4. The ranks of each host meet at a Unix socket and map memory (rendezvous.py), and all ranks confirm that they are
   ready over the connections of step 1.

If anything fails on the way, rank 0 tells the other ranks, and all of them raise the same error (network_star.py).
"""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from unisono import __version__, _engine
from unisono.bootstrap import network_messages as network
from unisono.bootstrap.environment import RankIdentity
from unisono.bootstrap.framing import Connection
from unisono.bootstrap.hosts import HostMap, hosts_of
from unisono.bootstrap.interfaces import is_loopback, list_interfaces, plain_address, select_address
from unisono.bootstrap.job_resources import CourierOffer, SharedCourier, random_number
from unisono.bootstrap.locality import host_info
from unisono.bootstrap.network_client import Dialer, Resolve, resolve
from unisono.bootstrap.network_handshake import NetworkHello, derive
from unisono.bootstrap.network_options import NetworkPlan
from unisono.bootstrap.network_server import NetworkServer, listen
from unisono.bootstrap.network_star import FarPeer, Star, StarCenter, StarMember
from unisono.bootstrap.rendezvous import system_error
from unisono.bootstrap.rendezvous_address import AbstractAddress
from unisono.bootstrap.rendezvous_server import RendezvousHooks
from unisono.bootstrap.tls import Tls
from unisono.errors import CommError, UnisonoError

if TYPE_CHECKING:
    from unisono.bootstrap.tls_connection import TlsCredentials

# Returns a courier that listens at an address, on a free port of the range; OSError if it cannot.
OpenCourier = Callable[[str, range | None], _engine.Courier]
# Called on rank 0 with the resources of all ranks and the map of hosts; returns the configuration.
ConfigureHosts = Callable[[list[dict[str, Any]], HostMap], dict[str, Any]]


@dataclass
class NetworkRendezvous:
    """The result of a rendezvous between hosts."""

    star: Star
    hosts: HostMap
    courier: SharedCourier | None  # None if all ranks are near
    config: dict[str, Any]  # determined by rank 0
    near_address: AbstractAddress  # at which the ranks of this host meet
    number: int = 0  # of the communicator
    courier_ranks: tuple[int, ...] | None = None  # by which the courier knows the ranks; None: their own


@dataclass(frozen=True)
class Table:
    """What rank 0 tells all ranks: the addresses of their couriers, by rank, and the configuration."""

    addresses: list[str]
    ports: list[int]
    config: dict[str, Any]
    generation: str  # different for every rendezvous
    certificates: list[bytes]  # digests, by rank; empty without TLS


class Participant:
    """A rank in a rendezvous between hosts; ``host`` is the identity of its host.

    ``offers`` are couriers that this process has already; those with the settings of the plan may be used. A courier
    stays open while the participant uses it, until ``leave_couriers``.
    """

    def __init__(
        self, identity: RankIdentity, plan: NetworkPlan, resources: dict[str, list[int]], timeout_s: float,
        hooks: RendezvousHooks | None = None, host: dict[str, str] | None = None, resolve: Resolve = resolve,
        offers: Sequence[CourierOffer] = (),
    ) -> None:  # fmt: skip
        self.identity, self.plan, self.timeout_s, self.resolve = identity, plan, timeout_s, resolve
        self.hooks = hooks or RendezvousHooks()
        self.credentials = _credentials(plan.tls)
        usable = [offer for offer in offers if offer.courier.settings == plan.settings]
        self.offers = {offer.courier.name: offer for offer in usable if offer.courier.add_user(self)}
        self.own = NetworkHello(
            __version__, host_info() if host is None else host, os.getpid(), resources, timeout_s, timeout_s,
            list(self.offers),
        )  # fmt: skip
        self.chosen: CourierOffer | None = None
        self.courier: SharedCourier | None = None
        self.identities: list[dict[str, str]] = []  # of the hosts of all ranks; on rank 0 only
        self.certificates = [b""] * identity.size  # digests of those of all ranks; on rank 0 only
        self.config: dict[str, Any] = {}  # on rank 0 only

    def meet(self, configure: ConfigureHosts, open_courier: OpenCourier) -> NetworkRendezvous:
        """Wait until all ranks are connected and know the couriers of all others."""
        try:
            return self._meet(configure, open_courier)
        except OSError as error:
            if isinstance(error, UnisonoError):
                raise
            raise system_error(self.identity, error) from error

    def leave_couriers(self) -> None:
        """Close what no communicator uses."""
        for courier in [self.courier, *(offer.courier for offer in self.offers.values())]:
            if courier is not None:
                courier.remove_user(self)

    def _meet(self, configure: ConfigureHosts, open_courier: OpenCourier) -> NetworkRendezvous:
        star, hosts, route, reached = self._gather(configure)
        try:
            star.allow_time()
            address, port = "", 0
            if self.chosen is not None:
                self.courier = self.chosen.courier
            elif hosts.count > 1:
                address = self._courier_address(route, reached)
                self.courier = SharedCourier(open_courier(address, self.plan.ports), self.plan.settings)
                self.courier.add_user(self)
                self.courier.address = address
                port = self.courier.engine.port
            answer = star.exchange({"address": address, "port": port}, self._make_table)
            table = _read_table(answer, hosts.size, self.plan.address)
            result = NetworkRendezvous(star, hosts, self.courier, table.config, self._near_address(table, hosts))
            if self.chosen is not None:
                result.number, result.courier_ranks = random_number(table.generation), self.chosen.ranks
            elif self.courier is not None:
                self.courier.name = table.generation
                self._introduce(self.courier.engine, table, hosts)
            return result
        except BaseException as error:
            self.leave_couriers()
            star.fail(error)
            raise

    # Steps 1 and 2: the connections and the map of hosts.

    def _gather(self, configure: ConfigureHosts) -> tuple[Star, HostMap, str, str]:
        """Return the star, the map of hosts, the address from which this rank reaches rank 0, and rank 0's address.

        On rank 0 the former is empty; the latter is empty if all ranks are near.
        """
        if self.identity.rank == 0:
            return self._gather_at_rank_0(configure)
        secure = self.credentials.connect if self.credentials else Connection
        dialer = Dialer(self.identity, self.plan, self.own, self.hooks, self.resolve, secure)
        connection = dialer.dial()
        star = StarMember(connection, self.identity.rank, self.plan.address, self.timeout_s)
        star.ends_s = dialer.ends_s
        try:
            route = plain_address(connection.socket.getsockname()[0])
            message = star.wait()
            hosts = _read_hosts(message, self.identity.size)
            if name := _text(message["courier"]):
                self.chosen = self.offers[name]
            return star, hosts, route, _text(message["reached"])
        except (KeyError, TypeError, ValueError) as error:
            star.close()
            reason = network.BAD_RANK_0_MESSAGE(address=self.plan.address, reason=error)
            raise CommError(reason, rank=0) from error
        except BaseException:
            star.close()
            raise

    def _gather_at_rank_0(self, configure: ConfigureHosts) -> tuple[Star, HostMap, str, str]:
        with listen(self.plan, time.monotonic() + self.timeout_s) as listener:
            self.plan = replace(self.plan, port=listener.getsockname()[1])  # it may have been any port
            secure = self.credentials.accept if self.credentials else Connection
            server = NetworkServer(self.identity, self.plan, self.own, self.hooks, secure)
            self.hooks.on_port(self.plan.port)
            server.accept_all(listener)
        star = StarCenter(server.peers, self.timeout_s)
        try:
            self.hooks.on_complete()
            peers = [server.peers[rank] for rank in range(1, self.identity.size)]
            self.identities = [self.own.host, *(peer.hello.host for peer in peers)]
            if self.credentials is not None:
                self.certificates = [self.credentials.certificate, *(peer.connection.certificate for peer in peers)]
            hosts = hosts_of(self.identities)
            far = [peer for peer in peers if hosts.host_of[peer.rank] != hosts.host_of[0]]
            reached = plain_address(far[0].connection.socket.getsockname()[0]) if far else ""
            self.config = configure([self.own.resources, *(peer.hello.resources for peer in peers)], hosts)
            self.chosen = self._common_courier(peers) if hosts.count > 1 else None
            message = {
                "names": list(hosts.names), "host_of": list(hosts.host_of), "reached": reached,
                "courier": "" if self.chosen is None else self.chosen.courier.name,
            }  # fmt: skip
            for peer in peers:
                peer.connection.send(message)
            star.flush()
            return star, hosts, "", reached
        except BaseException as error:
            star.fail(error)
            raise

    # Steps 2 and 3: the couriers.

    def _common_courier(self, peers: Sequence[FarPeer]) -> CourierOffer | None:
        """Return the courier that all ranks have already, if there is one; called on rank 0."""
        common = (offer for name, offer in self.offers.items() if all(name in peer.hello.couriers for peer in peers))
        return next(common, None)

    def _courier_address(self, route: str, reached: str) -> str:
        """Return the address at which this rank's courier listens.

        It is the one from which the kernel reaches rank 0. A rank near rank 0 may reach it over loopback; rank 0, and
        such a rank, take the address at which far ranks have reached rank 0.
        """
        if self.plan.interface is not None:
            family = socket.AF_INET6 if ":" in (route or reached) else socket.AF_INET
            return select_address(self.plan.interface, family, list_interfaces())
        is_local = any(each.address == reached for each in list_interfaces())
        return reached if not route or (is_loopback(route) and is_local) else route

    def _make_table(self, received: list[dict[str, Any]]) -> Sequence[dict[str, Any]]:
        """Return the table for all ranks; called on rank 0 with the messages about the couriers."""
        addresses, ports = [], []
        for rank, message in enumerate(received):
            try:
                address = _text(message.get("address"))
                if address:
                    ipaddress.ip_address(address)
                ports.append(_integer(message.get("port")))
            except ValueError as error:
                host = self.identities[rank]["host"]
                reason = network.BAD_FAR_MESSAGE(rank=rank, process=0, host=host, reason=error)
                raise CommError(reason, rank=rank) from error
            addresses.append(address)
        if any(addresses):
            check_loopback(addresses, self.identities)
        table = {
            "addresses": addresses, "ports": ports, "config": self.config, "generation": secrets.token_hex(16),
            "certificates": [certificate.hex() for certificate in self.certificates],
        }  # fmt: skip
        return [table] * len(received)

    def _introduce(self, courier: _engine.Courier, table: Table, hosts: HostMap) -> None:
        """Tell the courier the addresses and tickets of all far ranks."""
        rank, far = self.identity.rank, hosts.far(self.identity.rank)
        courier.know_peers(
            [address if is_far else "" for address, is_far in zip(table.addresses, far, strict=True)],
            [port if is_far else 0 for port, is_far in zip(table.ports, far, strict=True)],
            [hosts.name(peer) for peer in range(hosts.size)],
            [self._ticket(table, rank, peer) for peer in range(hosts.size)],
            [self._ticket(table, peer, rank) for peer in range(hosts.size)],
            table.certificates,
        )

    def _ticket(self, table: Table, sender: int, receiver: int) -> bytes:
        """Return the ticket with which a courier introduces itself to another."""
        ends = [f"{rank}|{table.addresses[rank]}|{table.ports[rank]}" for rank in (sender, receiver)]
        return derive(self.plan.token, "ticket", table.generation, *ends)

    def _near_address(self, table: Table, hosts: HostMap) -> AbstractAddress:
        host = hosts.host_of[self.identity.rank]
        name = derive(self.plan.token, "socket", table.generation, host)[:16].hex()
        return AbstractAddress(name, derive(self.plan.token, "secret", table.generation, host).hex())


def _credentials(tls: Tls | None) -> TlsCredentials | None:
    if tls is None:
        return None
    from unisono.bootstrap.tls_connection import TlsCredentials  # not loaded by jobs without TLS

    return TlsCredentials(tls)


def check_loopback(addresses: Sequence[str], identities: Sequence[dict[str, str]]) -> None:
    """Raise if a rank has a loopback address that a rank in another network namespace cannot reach."""
    places = [(identity["kernel"], identity["network"]) for identity in identities]
    for rank, address in enumerate(addresses):
        if not is_loopback(address):
            continue
        for other, place in enumerate(places):
            if place != places[rank]:
                raise CommError(
                    network.LOOPBACK(
                        rank=rank, host=identities[rank]["host"], address=address, other=other,
                        other_host=identities[other]["host"], other_address=addresses[other],
                    ),
                    rank=rank,
                )  # fmt: skip


def _read_hosts(message: dict[str, Any], size: int) -> HostMap:
    """Return the map of hosts in a message of rank 0; ValueError if it has another form."""
    names = tuple(map(_text, message["names"]))
    host_of = tuple(map(_integer, message["host_of"]))
    if len(host_of) != size or not all(0 <= host < len(names) for host in host_of):
        raise ValueError("a map of hosts of another size")
    return HostMap(names, host_of)


def _read_table(message: dict[str, Any], size: int, address: str) -> Table:
    """Return the table in a message of rank 0 at ``address``."""
    try:
        addresses, ports = list(map(_text, message["addresses"])), list(map(_integer, message["ports"]))
        if len(addresses) != size or len(ports) != size or not isinstance(message["config"], dict):
            raise ValueError("a table of another size")
        certificates = [bytes.fromhex(_text(each)) for each in message["certificates"]]
        if len(certificates) != size:
            raise ValueError("certificates of another number of ranks")
        return Table(addresses, ports, message["config"], _text(message["generation"]), certificates)
    except (KeyError, TypeError, ValueError) as error:
        raise CommError(network.BAD_RANK_0_MESSAGE(address=address, reason=error), rank=0) from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a {type(value).__name__}; expected a text")
    return value


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"a {type(value).__name__}; expected an integer")
    return value
