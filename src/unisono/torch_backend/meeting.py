"""How the ranks of a group meet: torch's store says where, then they knock at rank 0's door (comm/rendezvous)."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

from unisono.comm.communicator import Communicator
from unisono.comm.doors import Door, NamedDoor
from unisono.comm.environment import Place, job_trace
from unisono.comm.link import connect_link
from unisono.comm.rendezvous import Host
from unisono.comm.tables import load_table
from unisono.errors import CollectiveTimeout, CommError, PeerLost, UnisonoError, UsageError

WHERE = "unisono/where"  # rank 0's door, and its machine
PROBLEM = "unisono/problem"  # why the ranks do not meet
GRACE_S = 2.0  # for rank 0 to say what the problem is
# Ranks that start together find each other within this time: so long a rank asks again and again, and then leaves
# the waiting to the store, of which some look every 10 ms.
TOGETHER_S = 0.05
ASK_EVERY_S = 0.0003


class Visit(Host):
    """What every rank does while it waits: it looks whether there is a problem."""

    more_time = "give init_process_group() a longer timeout"

    def __init__(self, store: Any) -> None:
        self.store = store

    def look(self) -> None:
        """Raise if a rank has said that it is elsewhere, or rank 0 that others have not come."""
        if self.store.check([PROBLEM]):
            raise _error(self.store.get(PROBLEM))


class Welcome(Visit):
    """What rank 0 does beside: it tells where the door is while it is open."""

    def __init__(self, store: Any, name: str, secret: str) -> None:
        super().__init__(store)
        self.where = {"name": name, "secret": secret, "machine": _machine()}

    def opened(self) -> None:
        """Tell the others."""
        self.store.set(WHERE, json.dumps(self.where))

    def all_here(self) -> None:
        """Forget the place, which all have found.

        Another group may come to be through the same store, as when a program that torchrun has started destroys its
        group and makes a new one: its ranks must not look for each other here.
        """
        with contextlib.suppress(RuntimeError):  # a store may be unable to forget
            self.store.delete_key(WHERE)


def meet_through_store(store: Any, rank: int, size: int, timeout_s: float, staging_bytes: int) -> Communicator:
    """Return the communicator of all ranks that share this store (its keys belong to one group only)."""
    if rank == 0:
        name, secret = secrets.token_hex(16), secrets.token_hex(32)
        host = Welcome(store, name, secret) if size > 1 else None
        try:
            return _connect(rank, size, NamedDoor(name, secret), timeout_s, staging_bytes, host)
        except CollectiveTimeout as error:
            store.set(PROBLEM, json.dumps({"late": str(error)}))  # it names those who have not come
            raise
    where, mine = _place(store, size, timeout_s), _machine()
    if where["machine"]["kernel"] != mine["kernel"]:
        problem = (
            f"unisono works between the ranks of one machine as yet: rank 0 is on {where['machine']['name']}, but "
            f"rank {rank} on {mine['name']}; start all ranks on one machine, or use another backend between machines"
        )
        store.set(PROBLEM, json.dumps({"far": problem}))
        raise UsageError(problem)
    try:
        door = NamedDoor(where["name"], where["secret"])
        return _connect(rank, size, door, timeout_s, staging_bytes, Visit(store))
    except (PeerLost, CollectiveTimeout):  # rank 0 went away, or will: it knows why
        told = _get(store, PROBLEM, GRACE_S)
        if told is None:
            raise
        raise _error(told) from None


def _error(told: bytes) -> UnisonoError:
    """Return the error for a problem that somebody has told of."""
    problem = json.loads(told)
    return CollectiveTimeout(problem["late"]) if "late" in problem else UsageError(problem["far"])


def _place(store: Any, size: int, timeout_s: float) -> Any:
    """Return where rank 0 waits for the others."""
    found = _get(store, WHERE, timeout_s)
    if found is None:
        raise CollectiveTimeout(
            f"init_process_group: after {timeout_s:g} s rank 0 of {size} has not come; see whether it was started, "
            f"or {Visit.more_time}",
            rank=0,
        )
    return json.loads(found)


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
    rank: int, size: int, door: Door, timeout_s: float, staging_bytes: int, host: Host | None
) -> Communicator:
    place = Place(rank, size, rank, size, "alone", "", job_trace())
    return Communicator(connect_link(timeout_s, timeout_s, staging_bytes, load_table, place, door, host))


def _machine() -> dict[str, str]:
    """Return what tells this machine from any other: the running kernel, and a name for people."""
    try:
        kernel = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError as error:
        raise CommError(f"cannot read which machine this is: {error}") from error
    return {"kernel": kernel, "name": os.uname().nodename}
