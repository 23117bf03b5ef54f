"""Sends texts between ranks, for reports and commands of Unisono's tools, as a length and UTF-8 bytes."""

from __future__ import annotations

import numpy as np

from unisono.comm.communicator import Communicator


def all_gather_text(comm: Communicator, text: str) -> list[str]:
    """Return the texts of all ranks, by rank; every rank calls this."""
    own = np.frombuffer(text.encode(), np.uint8)
    lengths = np.zeros(comm.size, np.int64)
    comm.all_gather(lengths, np.array([own.size], np.int64))
    every = np.zeros(int(lengths.sum()), np.uint8)
    if every.size:
        comm.all_gather(every, own, out_sizes=[int(length) for length in lengths])
    ends = np.cumsum(lengths)
    return [every[end - length : end].tobytes().decode() for end, length in zip(ends, lengths, strict=True)]


def broadcast_text(comm: Communicator, text: str = "") -> str:
    """Return the text of rank 0; every rank calls this, and the texts of the others are ignored."""
    own = np.frombuffer(text.encode(), np.uint8)
    length = np.array([own.size], np.int64)
    comm.broadcast(length)
    found = own.copy() if comm.rank == 0 else np.zeros(int(length[0]), np.uint8)
    if found.size:
        comm.broadcast(found)
    return found.tobytes().decode()
