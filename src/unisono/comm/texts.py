"""Sends texts between ranks, for reports and commands of Unisono's tools, as a length and UTF-8 bytes."""

from __future__ import annotations

import numpy as np

from unisono.comm.communicator import Communicator
from unisono.comm.exchange import exchange_bytes


def all_gather_text(comm: Communicator, text: str) -> list[str]:
    """Return the texts of all ranks, by rank; every rank calls this."""
    return [data.decode() for data in exchange_bytes(comm.dispatcher, text.encode())]


def broadcast_text(comm: Communicator, text: str = "") -> str:
    """Return the text of rank 0; every rank calls this, and the texts of the others are ignored."""
    own = np.frombuffer(text.encode(), np.uint8)
    length = np.array([own.size], np.int64)
    comm.broadcast(length)
    found = own.copy() if comm.rank == 0 else np.zeros(int(length[0]), np.uint8)
    if found.size:
        comm.broadcast(found)
    return found.tobytes().decode()
