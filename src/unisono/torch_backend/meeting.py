"""How the ranks of a group meet: torch's store says where, then they knock at rank 0's door (comm/rendezvous)."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import Any

from unisono.comm.communicator import Communicator
from unisono.comm.environment import Place
from unisono.comm.link import connect_link
from unisono.comm.private_directory import write_secret
from unisono.comm.rendezvous import Host
from unisono.comm.tables import load_table
from unisono.errors import CommError, PeerLost, UsageError

WHERE = "unisono/where"  # rank 0's door, and its machine
FAR = "unisono/far"  # ranks that found themselves on another machine


class Door(Host):
    """Rank 0's part: it tells where the door is once it is open, and looks whether somebody cannot come."""

    def __init__(self, store: Any, directory: str) -> None:
        self.store, self.directory = store, directory

    def opened(self) -> None:
        """Tell the others."""
        self.store.set(WHERE, json.dumps({"directory": self.directory, "machine": _machine()}))

    def look(self) -> None:
        """Raise if a rank has said that it is elsewhere."""
        if self.store.check([FAR]):
            raise UsageError(self.store.get(FAR).decode())


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
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    where, mine = json.loads(store.get(WHERE)), _machine()
    if where["machine"]["kernel"] != mine["kernel"]:
        problem = (
            f"unisono works between the ranks of one machine as yet: rank 0 is on {where['machine']['name']}, but "
            f"rank {rank} on {mine['name']}; start all ranks on one machine, or use another backend between machines"
        )
        store.set(FAR, problem)
        raise UsageError(problem)
    try:
        return _connect(rank, size, where["directory"], timeout_s, staging_bytes)
    except PeerLost:
        if store.check([FAR]):  # that is why rank 0 went away
            raise UsageError(store.get(FAR).decode()) from None
        raise


def _connect(
    rank: int, size: int, directory: str, timeout_s: float, staging_bytes: int, host: Host | None = None
) -> Communicator:
    place = Place(rank, size, rank, size, "unisono", directory)
    return Communicator(connect_link(timeout_s, timeout_s, staging_bytes, load_table, place, number=1, host=host))


def _machine() -> dict[str, str]:
    """Return what tells this machine from any other: the running kernel, and a name for people."""
    try:
        kernel = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError as error:
        raise CommError(f"cannot read which machine this is: {error}") from error
    return {"kernel": kernel, "name": os.uname().nodename}
