"""The rendezvous of the ranks of a process group: torch's store holds the address at which rank 0 listens.

Every process that reaches the port of a TCPStore can write to it. Therefore the form of the content is checked, and
the process at the address must belong to the same user (bootstrap/rendezvous.py): a foreign process can make the
rendezvous fail, but cannot join it.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from unisono.bootstrap.environment import RankIdentity, job_trace
from unisono.bootstrap.handshake import error_from_dict, error_to_dict
from unisono.bootstrap.hosts import hosts_of
from unisono.bootstrap.locality import host_info
from unisono.bootstrap.membership import connect_link
from unisono.bootstrap.rendezvous import RendezvousHooks, listening_process
from unisono.bootstrap.rendezvous_address import AbstractAddress, Address, SocketAddress
from unisono.comm.communicator import Communicator
from unisono.comm.selection import load_table
from unisono.errors import CollectiveTimeout, CommError, UnisonoError, UsageError
from unisono.message import Template
from unisono.torch_backend import messages
from unisono.torch_backend.store_network import (
    StoreNetwork,
    is_moved,
    is_requested,
    meet_as_rank_0,
    meet_at_rank_0,
    moved,
    network_in,
    no_network,
    request_network,
    usable_addresses,
)

WHERE = "unisono/where"  # rank 0's address, and where rank 0 runs
PROBLEM = "unisono/problem"  # the error of a rank, if the rendezvous has failed
TEMPLATES = {template.id: template for template in vars(messages).values() if isinstance(template, Template)}
GRACE_S = 2.0  # for rank 0 to report its error
# Ranks that start together find each other within this time. A rank polls the store for this long, and then lets the
# store wait; some stores look only every 10 ms.
TOGETHER_S = 0.05
POLL_INTERVAL_S = 0.0003
NETWORK_EVERY_S = 0.01


class Visit(RendezvousHooks):
    """The part of every rank: while it waits, it looks for the error of another rank."""

    timeout_hint = messages.HINT_INIT_TIMEOUT()

    def __init__(self, store: Any, name: str) -> None:
        self.store, self.name = store, name
        self.on_network = False  # the ranks meet over the network

    def poll(self) -> None:
        """Raise the error of another rank, if there is one, or say that the ranks meet over the network."""
        self.poll_problem()
        if not self.on_network and network_in(self.store, self.name) is not None:
            raise moved()

    def poll_problem(self) -> None:
        """Raise the error of another rank, if there is one; the store may still hold that of an older rendezvous."""
        if self.store.check([PROBLEM]) and (error := _problem(self.store.get(PROBLEM), self.name)):
            raise error

    def report(self, error: BaseException, rank: int) -> None:
        """Report the error that makes this rendezvous fail."""
        with suppress(RuntimeError):  # the store is gone
            self.store.set(PROBLEM, json.dumps({**error_to_dict(error, rank), "rendezvous": self.name}))


class Welcome(Visit):
    """The part of rank 0: it publishes its address while it listens."""

    def __init__(self, store: Any, name: str, secret: str) -> None:
        super().__init__(store, name)
        self.secret = secret

    def poll(self) -> None:
        """Raise the error of another rank, if there is one, or say that a rank is on another host."""
        self.poll_problem()
        if not self.on_network and is_requested(self.store, self.name):
            raise moved()

    def on_listening(self) -> None:
        """Publish the address; raise if another process is rank 0 in this store."""
        if self.store.check([WHERE]):  # perhaps of a job that was killed
            process = listening_process(AbstractAddress(_where(self.store.get(WHERE))["name"], ""))
            if process is not None:
                raise UsageError(messages.STORE_IN_USE(process=process))
        self.store.set(WHERE, json.dumps({"name": self.name, "secret": self.secret, "rank 0": host_info()}))

    def on_complete(self) -> None:
        """Delete the address, to which all ranks are connected.

        The same store may serve another group later, for example when a program under torchrun destroys its group and
        makes a new one. The ranks of that group must not find this address.
        """
        with suppress(RuntimeError):  # some stores cannot delete a key
            self.store.delete_key(WHERE)


class StoreAddress(Address):
    """The address in the store. The first one may be left from a job that was killed; if no process listens there,
    the store is read again. If rank 0 is on another host, the ranks meet over the network.
    """

    def __init__(self, store: Any, rank: int, where: dict[str, Any]) -> None:
        self.store, self.rank, self.where, self.visit = store, rank, where, Visit(store, where["name"])
        self.mine = host_info()
        self.tried = False

    def read_again(self) -> bool:
        """Read the store again; return whether it has another address."""
        if self.store.check([WHERE]):
            self.where = _where(self.store.get(WHERE))
        is_new: bool = self.visit.name != self.where["name"]
        self.visit.name = self.where["name"]
        return is_new

    def reserve(self) -> Any:
        """Raise: only rank 0 reserves an address."""
        raise NotImplementedError

    @contextmanager
    def resolve(self) -> Iterator[SocketAddress]:
        """Yield the address of the socket."""
        if self.tried:
            self.read_again()
        self.tried = True
        if hosts_of([self.mine, self.where["rank 0"]]).count > 1:
            problem = no_network(self.rank, self.mine, self.where["rank 0"], usable_addresses())
            if problem:
                raise UsageError(messages.INIT(problem=problem))
            request_network(self.store, self.visit.name)
            raise moved()
        yield AbstractAddress(self.where["name"], self.where["secret"]).socket_address


def meet_through_store(store: Any, rank: int, size: int, timeout_s: float, staging_bytes: int) -> Communicator:
    """Return the communicator of all ranks that share this store (its keys belong to one group only)."""
    if rank == 0:
        return _meet_as_rank_0(store, size, timeout_s, staging_bytes)
    ends_s = time.monotonic() + timeout_s
    address = StoreAddress(store, rank, _rank_0_address(store, size, timeout_s))
    try:
        try:
            return _connect(rank, size, address, timeout_s, staging_bytes, address.visit)
        except CommError as error:
            if not is_moved(error):
                raise
        network = _wait_for_network(address, ends_s, timeout_s, size)
        left_s = max(0.0, ends_s - time.monotonic())
        address.visit.on_network = True
        return meet_at_rank_0(
            network, address.visit, rank, size, left_s, staging_bytes, address.mine,
            address.where["rank 0"],
        )  # fmt: skip
    except UnisonoError as error:
        if getattr(error, "rank", None) == 0:  # rank 0 has ended or will end, and reports the reason
            told = _get(store, PROBLEM, GRACE_S)
            known = told and _problem(told, address.visit.name)
            if known:
                raise known from None
        elif type(error) in (UsageError, CommError):  # what rank 0 may not know
            address.visit.report(error, rank)
        raise


def _meet_as_rank_0(store: Any, size: int, timeout_s: float, staging_bytes: int) -> Communicator:
    name, secret = secrets.token_hex(16), secrets.token_hex(32)
    ends_s = time.monotonic() + timeout_s
    hooks = Welcome(store, name, secret) if size > 1 else None
    try:
        try:
            return _connect(0, size, AbstractAddress(name, secret), timeout_s, staging_bytes, hooks)
        except CommError as error:
            if hooks is None or not is_moved(error):
                raise
        left_s = max(0.0, ends_s - time.monotonic())
        hooks.on_network = True
        return meet_as_rank_0(store, hooks, name, size, left_s, staging_bytes)
    except BaseException as error:
        if hooks is not None:
            hooks.report(error, 0)  # also to the ranks that have not connected yet
        raise


def _wait_for_network(address: StoreAddress, ends_s: float, timeout_s: float, size: int) -> StoreNetwork:
    """Return the address of rank 0 on the network, when it has published it."""
    while True:
        address.visit.poll_problem()
        if (network := network_in(address.store, address.visit.name)) is not None:
            return network
        if time.monotonic() >= ends_s:
            message = messages.NO_RANK_0(seconds=timeout_s, size=size, hint=Visit.timeout_hint)
            raise CollectiveTimeout(message, rank=0)
        time.sleep(NETWORK_EVERY_S)
        if address.read_again():
            request_network(address.store, address.visit.name)


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
    raise CommError(messages.FOREIGN_STORE_CONTENT(call="init_process_group", key=WHERE, content=repr(told[:80])))


def _rank_0_address(store: Any, size: int, timeout_s: float) -> dict[str, Any]:
    """Wait for the address of rank 0 and return it."""
    found = _get(store, WHERE, timeout_s)
    if found is None:
        message = messages.NO_RANK_0(seconds=timeout_s, size=size, hint=Visit.timeout_hint)
        raise CollectiveTimeout(message, rank=0)
    return _where(found)


def _get(store: Any, key: str, timeout_s: float) -> bytes | None:
    """Return the value of a key in the store; None if the key is not set in time."""
    ends = time.monotonic() + min(TOGETHER_S, timeout_s)
    while not store.check([key]) and time.monotonic() < ends:
        time.sleep(POLL_INTERVAL_S)
    try:
        store.wait([key], timedelta(seconds=timeout_s))  # get() would wait for the timeout of the store, minutes
    except dist.DistNetworkError:
        raise  # the store is gone
    except RuntimeError:  # not all stores have an exception class for a timeout
        return None
    found: bytes = store.get(key)
    return found


def _connect(
    rank: int, size: int, address: Address, timeout_s: float, staging_bytes: int, hooks: RendezvousHooks | None
) -> Communicator:
    identity = RankIdentity(rank, size, rank, size, "alone", "", job_trace())
    return Communicator(connect_link(timeout_s, timeout_s, staging_bytes, load_table, identity, address, hooks))
