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
from unisono.comm.tables import load_table
from unisono.errors import CommError, UsageError

WHERE = "unisono/where"
MACHINE = "unisono/machine/{rank}"


def meet_through_store(store: Any, rank: int, size: int, timeout_s: float, staging_bytes: int) -> Communicator:
    """Return the communicator of all ranks that share this store (its keys belong to one group only)."""
    if size == 1:
        return _connect(rank, size, "", timeout_s, staging_bytes)
    store.set(MACHINE.format(rank=rank), json.dumps(_machine()))
    if rank != 0:
        told = json.loads(store.get(WHERE))
        if told["problem"]:
            raise UsageError(told["problem"])
        return _connect(rank, size, told["directory"], timeout_s, staging_bytes)
    directory = tempfile.mkdtemp(prefix="unisono-")  # 0700
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            write_secret(descriptor, secrets.token_hex(32))
        finally:
            os.close(descriptor)
        problem = _apart([json.loads(store.get(MACHINE.format(rank=other))) for other in range(size)])
        store.set(WHERE, json.dumps({"directory": directory, "problem": problem}))
        if problem:
            raise UsageError(problem)
        return _connect(rank, size, directory, timeout_s, staging_bytes)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _connect(rank: int, size: int, directory: str, timeout_s: float, staging_bytes: int) -> Communicator:
    place = Place(rank, size, rank, size, "unisono", directory)
    return Communicator(connect_link(timeout_s, timeout_s, staging_bytes, load_table, place, number=1))


def _machine() -> dict[str, str]:
    """Return what tells this machine from any other: the running kernel, and a name for people."""
    try:
        kernel = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError as error:
        raise CommError(f"cannot read which machine this is: {error}") from error
    return {"kernel": kernel, "name": os.uname().nodename}


def _apart(machines: list[dict[str, str]]) -> str | None:
    """Say which ranks are not on rank 0's machine, if any."""
    far = [rank for rank, machine in enumerate(machines) if machine["kernel"] != machines[0]["kernel"]]
    if not far:
        return None
    return (
        f"unisono works between the ranks of one machine as yet: rank 0 is on {machines[0]['name']}, but "
        + ", ".join(f"rank {rank} on {machines[rank]['name']}" for rank in far)
        + "; start all ranks on one machine, or use another backend between machines"
    )
