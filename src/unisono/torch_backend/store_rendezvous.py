"""How the ranks of a group meet: torch's store says where, then they knock at rank 0's address (comm/rendezvous).

Anybody who reaches the port of a TCPStore can write to it. So what the store says is checked for its shape, and the
process that it leads to must belong to our user (comm/rendezvous); nobody can gain more than to end the meeting.
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

WHERE = "unisono/where"  # rank 0's address, and where rank 0 runs
PROBLEM = "unisono/problem"  # why the ranks do not meet
GRACE_S = 2.0  # for rank 0 to say what the problem is
# Ranks that start together find each other within this time: so long a rank asks again and again, and then leaves
# the waiting to the store, of which some look every 10 ms.
TOGETHER_S = 0.05
ASK_EVERY_S = 0.0003


class Visit(RendezvousHooks):
    """What every rank does while it waits: it looks whether there is a problem."""

    timeout_hint = "give init_process_group() a longer timeout"

    def __init__(self, store: Any, name: str) -> None:
        self.store, self.name = store, name

    def poll(self) -> None:
        """Raise if a rank has said why this meeting cannot be; the store may have kept words about an older one."""
        if self.store.check([PROBLEM]) and (error := _problem(self.store.get(PROBLEM), self.name)):
            raise error

    def tell(self, error: BaseException, rank: int) -> None:
        """Say why this meeting cannot be."""
        with suppress(RuntimeError):  # the store is gone: then nobody can be told
            self.store.set(PROBLEM, json.dumps({**error_to_dict(error, rank), "meeting": self.name}))


class Welcome(Visit):
    """What rank 0 does beside: it tells where the address is while it is open."""

    def __init__(self, store: Any, name: str, secret: str) -> None:
        super().__init__(store, name)
        self.secret = secret

    def on_listening(self) -> None:
        """Tell the others; raise if another process is rank 0 in this store."""
        if self.store.check([WHERE]):  # perhaps of a job that was killed
            process = listening_process(AbstractAddress(_where(self.store.get(WHERE))["name"], ""))
            if process is not None:
                raise UsageError(
                    f"init_process_group: process {process} is rank 0 in this store already and waits for its ranks; "
                    "give every job a store of its own (another MASTER_PORT, another file)"
                )
        self.store.set(WHERE, json.dumps({"name": self.name, "secret": self.secret, "rank 0": host_info()}))

    def on_complete(self) -> None:
        """Forget the socket_address, which every rank has found.

        Another group may come to be through the same store, as when a program that torchrun has started destroys its
        group and makes a new one: its ranks must not look for each other here.
        """
        with suppress(RuntimeError):  # a store may be unable to forget
            self.store.delete_key(WHERE)


class StoreAddress(Address):
    """The address that the store tells of. What it told first may be left from a job that was killed: it is asked
    again when nobody listens.
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
        """Give the socket_address."""
        if self.tried and self.store.check([WHERE]):
            self.where = _where(self.store.get(WHERE))
        self.tried = True
        self.visit.name = self.where["name"]
        problem = incompatibility(self.rank, self.mine, self.where["rank 0"])
        if problem:
            raise UsageError(f"init_process_group: {problem}")
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
                hooks.tell(error, rank)  # also to those that have not come yet
            raise
    where = _rank_0_address(store, size, timeout_s)
    visit = Visit(store, where["name"])
    try:
        address = StoreAddress(store, rank, where, visit)
        return _connect(rank, size, address, timeout_s, staging_bytes, visit)
    except UnisonoError as error:
        if getattr(error, "rank", None) == 0:  # rank 0 went away, or will: it knows why
            told = _get(store, PROBLEM, GRACE_S)
            known = told and _problem(told, visit.name)
            if known:
                raise known from None
        elif type(error) in (UsageError, CommError):  # what rank 0 may not know
            visit.tell(error, rank)
        raise


def _problem(told: bytes, name: str) -> UnisonoError | None:
    """Return the error for a problem that a rank of this meeting has told of."""
    try:
        problem = json.loads(told)
        return error_from_dict(problem) if problem["meeting"] == name else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _where(told: bytes) -> dict[str, Any]:
    """Return where rank 0 waits, as the store says."""
    try:
        where = json.loads(told)
        texts = [where["name"], where["secret"], *(where["rank 0"][name] for name in host_info())]
        if all(isinstance(text, str) for text in texts):
            return dict(where)
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise CommError(
        f"init_process_group: the store's {WHERE} is not what rank 0 writes there: {told[:80]!r}; does another "
        "program, or another version of Unisono, use this store?"
    )


def _rank_0_address(store: Any, size: int, timeout_s: float) -> dict[str, Any]:
    """Return where rank 0 waits for the others."""
    found = _get(store, WHERE, timeout_s)
    if found is None:
        raise CollectiveTimeout(
            f"init_process_group: after {timeout_s:g} s rank 0 of {size} has not come; see whether it was started, "
            f"or {Visit.timeout_hint}",
            rank=0,
        )
    return _where(found)


def _get(store: Any, key: str, timeout_s: float) -> bytes | None:
    """Return what the store has for a key, or None if it has nothing in time."""
    ends = time.monotonic() + min(TOGETHER_S, timeout_s)
    while not store.check([key]) and time.monotonic() < ends:
        time.sleep(ASK_EVERY_S)
    try:
        store.wait([key], timedelta(seconds=timeout_s))  # get() waits as long as the store likes, which is minutes
    except dist.DistNetworkError:
        raise  # the store is gone
    except RuntimeError:  # not all stores have a class of their own for this
        return None
    found: bytes = store.get(key)
    return found


def _connect(
    rank: int, size: int, address: Address, timeout_s: float, staging_bytes: int, hooks: RendezvousHooks | None
) -> Communicator:
    identity = RankIdentity(rank, size, rank, size, "alone", "", job_trace())
    return Communicator(connect_link(timeout_s, timeout_s, staging_bytes, load_table, identity, address, hooks))
