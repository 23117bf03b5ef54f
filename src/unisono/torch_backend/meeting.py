"""How the ranks of a group meet: torch's store says where, then they knock at rank 0's door (comm/rendezvous)."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

from unisono.comm.communicator import Communicator
from unisono.comm.environment import Place, job_trace
from unisono.comm.link import connect_link
from unisono.comm.private_directory import write_secret
from unisono.comm.rendezvous import Host
from unisono.comm.tables import load_table
from unisono.errors import CollectiveTimeout, CommError, PeerLost, UnisonoError, UsageError

WHERE = "unisono/where"  # rank 0's door, and its machine
PROBLEM = "unisono/problem"  # why the ranks do not meet
GRACE_S = 2.0  # for rank 0 to say what the problem is


class Visit(Host):
    """What every rank does while it waits: it looks whether there is a problem."""

    more_time = "give init_process_group() a longer timeout"

    def __init__(self, store: Any) -> None:
        self.store = store

    def look(self) -> None:
        """Raise if a rank has said that it is elsewhere, or rank 0 that others have not come."""
        if self.store.check([PROBLEM]):
            raise _error(self.store.get(PROBLEM))


class Door(Visit):
    """What rank 0 does beside: it tells where the door is while it is open."""

    def __init__(self, store: Any, directory: str) -> None:
        super().__init__(store)
        self.directory = directory

    def opened(self) -> None:
        """Tell the others."""
        self.store.set(WHERE, json.dumps({"directory": self.directory, "machine": _machine()}))

    def all_here(self) -> None:
        """Forget the place, which all have found.

        Another group may come to be through the same store, as when a program that torchrun has started destroys its
        group and makes a new one: its ranks must not look for each other here.
        """
        with contextlib.suppress(RuntimeError):  # a store may be unable to forget
            self.store.delete_key(WHERE)


def meet_through_store(store: Any, rank: int, size: int, timeout_s: float, staging_bytes: int) -> Communicator:
    """Return the communicator of all ranks that share this store (its keys belong to one group only)."""
    if size == 1:
        return _connect(rank, size, "", timeout_s, staging_bytes)
    if rank == 0:
        directory = tempfile.mkdtemp(prefix="unisono-")  # 0700
        try:
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            try:
                write_secret(descriptor, secrets.token_hex(32))
            finally:
                os.close(descriptor)
            return _connect(rank, size, directory, timeout_s, staging_bytes, Door(store, directory))
        except CollectiveTimeout as error:
            store.set(PROBLEM, json.dumps({"late": str(error)}))  # it names those who have not come
            raise
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    where, mine = _place(store, size, timeout_s), _machine()
    if where["machine"]["kernel"] != mine["kernel"]:
        problem = (
            f"unisono works between the ranks of one machine as yet: rank 0 is on {where['machine']['name']}, but "
            f"rank {rank} on {mine['name']}; start all ranks on one machine, or use another backend between machines"
        )
        store.set(PROBLEM, json.dumps({"far": problem}))
        raise UsageError(problem)
    try:
        return _connect(rank, size, where["directory"], timeout_s, staging_bytes, Visit(store))
    except (PeerLost, CollectiveTimeout) as error:  # rank 0 went away, or will: it knows why
        if isinstance(error, PeerLost):
            shutil.rmtree(where["directory"], ignore_errors=True)  # if it was killed, nobody else removes this
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
    try:
        store.wait([key], timedelta(seconds=timeout_s))  # get() waits as long as the store likes, which is minutes
    except dist.DistNetworkError:
        raise  # the store is gone
    except RuntimeError:  # not all stores have a class of their own for this
        return None
    found: bytes = store.get(key)
    return found


def _connect(
    rank: int, size: int, directory: str, timeout_s: float, staging_bytes: int, host: Host | None = None
) -> Communicator:
    place = Place(rank, size, rank, size, "unisono", directory, job_trace())
    return Communicator(connect_link(timeout_s, timeout_s, staging_bytes, load_table, place, number=1, host=host))


def _machine() -> dict[str, str]:
    """Return what tells this machine from any other: the running kernel, and a name for people."""
    try:
        kernel = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError as error:
        raise CommError(f"cannot read which machine this is: {error}") from error
    return {"kernel": kernel, "name": os.uname().nodename}
