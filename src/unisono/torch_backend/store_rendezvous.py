"""The rendezvous of the ranks of a process group: torch's store holds the address at which rank 0 listens.

Rank 0 listens at a Unix socket. If a rank finds that it is on another host, all ranks meet over the network instead
(store_network.py).

Every process that reaches the port of a TCPStore can read it and write to it. Therefore the form of the content is
checked, and the process at a Unix socket must belong to the same user (bootstrap/rendezvous.py): if torchrun states
that all ranks are on one host, a foreign process can make the rendezvous fail, but cannot join it. Otherwise, a
process that reads the store can announce itself as a rank on another host, and knows the token of the group.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from unisono.bootstrap.environment import RankIdentity, job_network, job_trace, torchrun_is_on_one_host
from unisono.bootstrap.handshake import error_from_dict, error_to_dict
from unisono.bootstrap.job_resources import CourierOffer
from unisono.bootstrap.locality import host_info
from unisono.bootstrap.membership import Link, connect_link
from unisono.bootstrap.network_options import check_ports, check_tls, transport_of
from unisono.bootstrap.rendezvous import RendezvousHooks, listening_process
from unisono.bootstrap.rendezvous_address import AbstractAddress, Address, SocketAddress
from unisono.comm.communicator import Communicator
from unisono.comm.links import link_rate_in_config, settle_link_rate
from unisono.comm.machine import load_tuning
from unisono.errors import CollectiveTimeout, CommError, UnisonoError, UsageError
from unisono.message import Template
from unisono.torch_backend import messages
from unisono.torch_backend.options import Options
from unisono.torch_backend.store_network import (
    NETWORK,
    Announcement,
    NetworkMember,
    NetworkWelcome,
    RankZero,
    announce,
    announced,
    foreign_content,
    is_far,
    is_moved,
    listening_addresses,
    moved,
    published_addresses,
    reachable,
)

WHERE = "unisono/where"  # rank 0's address, and where rank 0 runs
PROBLEM = "unisono/problem"  # the error of a rank, if the rendezvous has failed
TEMPLATES = {template.id: template for template in vars(messages).values() if isinstance(template, Template)}
GRACE_S = 2.0  # for rank 0 to report its error
# Ranks that start together find each other within this time. A rank polls the store for this long, and then lets the
# store wait; some stores look only every 10 ms.
TOGETHER_S = 0.05
ASK_EVERY_S = 0.0003
LOOK_EVERY_S = 0.02  # rank 0, for ranks on other hosts
LOOK_AGAIN_S = 1.0  # a rank that waits for rank 0's address, for errors and for a later rank 0


class Visit(RendezvousHooks):
    """The part of every rank: while it waits, it looks for the error of another rank."""

    timeout_hint = messages.HINT_INIT_TIMEOUT()

    def __init__(self, store: Any, name: str) -> None:
        self.store, self.name = store, name

    def poll(self) -> None:
        """Raise the error of another rank, if there is one."""
        self.look_for_error()

    def look_for_error(self) -> None:
        """Raise the error of another rank, if there is one; the store may still hold that of an older rendezvous."""
        if self.store.check([PROBLEM]) and (error := _problem(self.store.get(PROBLEM), self.name)):
            raise error

    def report(self, error: BaseException, rank: int) -> None:
        """Report the error that makes this rendezvous fail."""
        with suppress(RuntimeError):  # the store is gone
            self.store.set(PROBLEM, json.dumps({**error_to_dict(error, rank), "rendezvous": self.name}))


class Welcome(Visit):
    """The part of rank 0: it publishes its address while it listens, and looks for ranks on other hosts."""

    poll_every_s = LOOK_EVERY_S

    def __init__(self, store: Any, name: str, secret: str, host: dict[str, str], *, is_on_one_host: bool) -> None:
        super().__init__(store, name)
        self.secret, self.host, self.is_on_one_host = secret, host, is_on_one_host
        self.far: Announcement | None = None

    def on_listening(self) -> None:
        """Publish the address; raise if another process is rank 0 in this store."""
        if self.store.check([WHERE]):  # perhaps of a job that was killed
            process = listening_process(AbstractAddress(_where(self.store.get(WHERE))["name"], ""))
            if process is not None:
                raise UsageError(messages.STORE_IN_USE(process=process))
        self.store.set(WHERE, json.dumps({"name": self.name, "secret": self.secret, "rank 0": self.host}))

    def poll(self) -> None:
        """Raise the error of another rank, if there is one, or say that a rank is on another host."""
        self.look_for_error()
        self.far = announced(self.store, self.name)
        if self.far is None:
            return
        if self.is_on_one_host:
            hosts = {"host_0": self.host["host"], "rank": self.far.rank, "host": self.far.host["host"]}
            raise UsageError(messages.NOT_ON_ONE_HOST(**hosts))
        raise moved()

    def on_complete(self) -> None:
        """Delete the address, to which all ranks are connected.

        The same store may serve another group later, for example when a program under torchrun destroys its group and
        makes a new one. The ranks of that group must not find this address.
        """
        with suppress(RuntimeError):  # some stores cannot delete a key
            self.store.delete_key(WHERE)


class StoreAddress(Address):
    """The address in the store. The first one may be left from a job that was killed; if no process listens there,
    the store is read again.
    """

    def __init__(self, store: Any, where: dict[str, Any], visit: Visit, host: dict[str, str]) -> None:
        self.store, self.where, self.visit, self.host = store, where, visit, host
        self.tried = False

    def reserve(self) -> Any:
        """Raise: only rank 0 reserves an address."""
        raise NotImplementedError

    @contextmanager
    def resolve(self) -> Iterator[SocketAddress]:
        """Yield the address of the socket; raise if the ranks meet over the network instead."""
        if self.tried and self.store.check([WHERE]):
            self.where = _where(self.store.get(WHERE))
        is_first, self.tried = not self.tried, True
        self.visit.name = self.where["name"]
        if is_far(self.host, self.where["rank 0"]) or (
            not is_first and self.store.check([NETWORK + self.visit.name])
        ):
            raise moved()
        yield AbstractAddress(self.where["name"], self.where["secret"]).socket_address


def meet_through_store(
    store: Any, rank: int, size: int, timeout_s: float, options: Options, offers: Sequence[CourierOffer] = ()
) -> Communicator:
    """Return the communicator of all ranks that share this store (its keys belong to one group only).

    ``offers`` are couriers of other groups, which know all of these ranks.
    """
    check_ports(options.ports)
    link_rate_in_config(options.link_rate)  # checks it
    launcher = job_network("unisono")
    transport, tls = transport_of(options.transport, launcher), options.tls or launcher.tls
    check_tls(tls, transport)
    options = replace(options, transport=transport, tls=tls)
    identity = RankIdentity(rank, size, rank, size, "alone", "", job_trace())
    if size == 1:
        return Communicator(
            connect_link(timeout_s, timeout_s, options.staging_bytes, load_tuning, identity, AbstractAddress("", ""))
        )
    member = StoreMember(store, identity, timeout_s, options, offers)
    link = member.host_rendezvous() if rank == 0 else member.join_rendezvous()
    return settle_link_rate(Communicator(link), link.config)


class StoreMember:
    """A rank in a rendezvous through a store."""

    def __init__(
        self, store: Any, identity: RankIdentity, timeout_s: float, options: Options, offers: Sequence[CourierOffer]
    ) -> None:
        self.store, self.identity, self.timeout_s, self.options = store, identity, timeout_s, options
        self.ends_s = time.monotonic() + timeout_s
        self.host = host_info()
        self.network = NetworkMember(identity, self.host, options, timeout_s, self.ends_s, offers)

    def host_rendezvous(self) -> Link:
        """Wait for all other ranks, as rank 0."""
        name, secret = secrets.token_hex(16), secrets.token_hex(32)
        is_on_one_host = torchrun_is_on_one_host(self.identity.size)
        welcome = Welcome(self.store, name, secret, self.host, is_on_one_host=is_on_one_host)
        try:
            link = self._connect_on_host(AbstractAddress(name, secret), welcome)
            if link is not None:
                return link
            assert welcome.far is not None
            addresses = listening_addresses(self.store, welcome.far, self.host, self.options)
            rank_0 = RankZero(self.host["host"], addresses)
            return self.network.connect(rank_0, name, secret, NetworkWelcome(welcome, addresses))
        except BaseException as error:
            welcome.report(error, 0)  # also to the ranks that have not connected yet
            raise

    def join_rendezvous(self) -> Link:
        """Connect to rank 0."""
        where = _rank_0_address(self.store, self.identity.size, self.timeout_s)
        visit = Visit(self.store, where["name"])
        try:
            address = StoreAddress(self.store, where, visit, self.host)
            while (link := self._connect_on_host(address, visit)) is None:
                link = self._join_over_network(address.where, visit)
                if link is not None:
                    break
            return link
        except UnisonoError as error:
            if getattr(error, "rank", None) == 0:  # rank 0 has ended or will end, and reports the reason
                told = _get(self.store, PROBLEM, GRACE_S)
                known = told and _problem(told, visit.name)
                if known:
                    raise known from None
            elif type(error) in (UsageError, CommError):  # what rank 0 may not know
                visit.report(error, self.identity.rank)
            raise

    def _connect_on_host(self, address: Address, hooks: RendezvousHooks) -> Link | None:
        """Meet the other ranks on this host; return None if some are on other hosts."""
        try:
            return connect_link(
                self.timeout_s, self.timeout_s, self.options.staging_bytes, load_tuning, self.identity, address, hooks
            )
        except CommError as error:
            if not is_moved(error):
                raise
            return None

    def _join_over_network(self, where: dict[str, Any], visit: Visit) -> Link | None:
        """Wait until rank 0 listens for ranks of other hosts, and connect to it.

        Return None if the store has another rank 0 now: the first address was left from a job that was killed.
        """
        rank, rank_0 = self.identity.rank, where["rank 0"]
        if is_far(self.host, rank_0):
            announce(self.store, visit.name, rank, self.host, rank_0, self.options)
        key = NETWORK + visit.name
        while (left_s := self.ends_s - time.monotonic()) > 0:
            content = _get(self.store, key, min(left_s, LOOK_AGAIN_S))
            if content is not None:
                addresses, port = published_addresses(content, key)
                found = RankZero(rank_0["host"], reachable(addresses, rank, self.host, rank_0), port)
                return self.network.connect(found, visit.name, where["secret"], visit)
            visit.look_for_error()
            if self.store.check([WHERE]) and _where(self.store.get(WHERE))["name"] != visit.name:
                return None
        raise _no_rank_0(self.identity.size, self.timeout_s)


def _problem(told: bytes, name: str) -> UnisonoError | None:
    """Return the error that a rank of this rendezvous has reported."""
    try:
        problem = json.loads(told)
        return error_from_dict(problem, TEMPLATES) if problem["rendezvous"] == name else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _where(told: bytes) -> dict[str, Any]:
    """Return the address of rank 0 in the content of the store."""
    try:
        where = json.loads(told)
        texts = [where["name"], where["secret"], *(where["rank 0"][name] for name in host_info())]
        if all(isinstance(text, str) for text in texts):
            return dict(where)
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise foreign_content(WHERE, told)


def _rank_0_address(store: Any, size: int, timeout_s: float) -> dict[str, Any]:
    """Wait for the address of rank 0 and return it."""
    found = _get(store, WHERE, timeout_s)
    if found is None:
        raise _no_rank_0(size, timeout_s)
    return _where(found)


def _no_rank_0(size: int, timeout_s: float) -> CollectiveTimeout:
    message = messages.NO_RANK_0(seconds=timeout_s, size=size, hint=Visit.timeout_hint)
    return CollectiveTimeout(message, rank=0)


def _get(store: Any, key: str, timeout_s: float) -> bytes | None:
    """Return the value of a key in the store; None if the key is not set in time."""
    ends = time.monotonic() + min(TOGETHER_S, timeout_s)
    while not store.check([key]) and time.monotonic() < ends:
        time.sleep(ASK_EVERY_S)
    try:
        store.wait([key], timedelta(seconds=timeout_s))  # get() would wait for the timeout of the store, minutes
    except dist.DistNetworkError:
        raise  # the store is gone
    except RuntimeError:  # not all stores have an exception class for a timeout
        return None
    found: bytes = store.get(key)
    return found
