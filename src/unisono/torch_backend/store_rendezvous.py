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
from unisono.bootstrap.locality import host_info, incompatibility
from unisono.bootstrap.membership import connect_link
from unisono.bootstrap.rendezvous import RendezvousHooks, listening_process
from unisono.bootstrap.rendezvous_address import AbstractAddress, Address, SocketAddress
from unisono.comm.communicator import Communicator
from unisono.comm.selection import load_table
from unisono.errors import CollectiveTimeout, CommError, UnisonoError, UsageError
from unisono.message import Template
from unisono.torch_backend import messages

WHERE = "unisono/where"  # rank 0's address, and where rank 0 runs
PROBLEM = "unisono/problem"  # the error of a rank, if the rendezvous has failed
TEMPLATES = {template.id: template for template in vars(messages).values() if isinstance(template, Template)}
GRACE_S = 2.0  # for rank 0 to report its error
# Ranks that start together find each other within this time. A rank polls the store for this long, and then lets the
# store wait; some stores look only every 10 ms.
TOGETHER_S = 0.05
ASK_EVERY_S = 0.0003


class Visit(RendezvousHooks):
    """The part of every rank: while it waits, it looks for the error of another rank."""

    timeout_hint = messages.HINT_INIT_TIMEOUT()

    def __init__(self, store: Any, name: str) -> None:
        self.store, self.name = store, name

    def poll(self) -> None:
        """Raise the error of another rank, if there is one; the store may still hold that of an older rendezvous."""
        if self.store.check([PROBLEM]) and (error := _problem(self.store.get(PROBLEM), self.name)):
            raise error

    def tell(self, error: BaseException, rank: int) -> None:
        """Report the error that makes this rendezvous fail."""
        with suppress(RuntimeError):  # the store is gone
            self.store.set(PROBLEM, json.dumps({**error_to_dict(error, rank), "rendezvous": self.name}))


class Welcome(Visit):
    """The part of rank 0: it publishes its address while it listens."""

    def __init__(self, store: Any, name: str, secret: str) -> None:
        super().__init__(store, name)
        self.secret = secret

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
    the store is read again.
    """

    def __init__(self, store: Any, rank: int, where: dict[str, Any], visit: Visit) -> None:
        self.store, self.rank, self.where, self.visit = store, rank, where, visit
        self.mine = host_info()
        self.tried = False

    def reserve(self) -> Any:
        """Raise: only rank 0 reserves an address."""
        raise NotImplementedError

    @contextmanager
    def resolve(self) -> Iterator[SocketAddress]:
        """Yield the address of the socket."""
        if self.tried and self.store.check([WHERE]):
            self.where = _where(self.store.get(WHERE))
        self.tried = True
        self.visit.name = self.where["name"]
        problem = incompatibility(self.rank, self.mine, self.where["rank 0"])
        if problem:
            raise UsageError(messages.INIT(problem=problem))
        yield AbstractAddress(self.where["name"], self.where["secret"]).socket_address


def meet_through_store(store: Any, rank: int, size: int, timeout_s: float, staging_bytes: int) -> Communicator:
    """Return the communicator of all ranks that share this store (its keys belong to one group only)."""
    if rank == 0:
        name, secret = secrets.token_hex(16), secrets.token_hex(32)
        hooks = Welcome(store, name, secret) if size > 1 else None
        try:
            return _connect(rank, size, AbstractAddress(name, secret), timeout_s, staging_bytes, hooks)
        except BaseException as error:
            if hooks is not None:
                hooks.tell(error, rank)  # also to the ranks that have not connected yet
            raise
    where = _rank_0_address(store, size, timeout_s)
    visit = Visit(store, where["name"])
    try:
        address = StoreAddress(store, rank, where, visit)
        return _connect(rank, size, address, timeout_s, staging_bytes, visit)
    except UnisonoError as error:
        if getattr(error, "rank", None) == 0:  # rank 0 has ended or will end, and reports the reason
            told = _get(store, PROBLEM, GRACE_S)
            known = told and _problem(told, visit.name)
            if known:
                raise known from None
        elif type(error) in (UsageError, CommError):  # what rank 0 may not know
            visit.tell(error, rank)
        raise


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
        time.sleep(ASK_EVERY_S)
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
