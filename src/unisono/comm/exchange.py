"""Sends bytes of any length from every rank to every other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unisono.collectives import all_gather
from unisono.comm.call_request import CallRequest
from unisono.compiler import Lengths

if TYPE_CHECKING:
    from unisono.comm.dispatch import Dispatcher

LENGTH_BYTES = 8


def exchange_bytes(dispatcher: Dispatcher, data: bytes, label: str | None = None) -> list[bytes]:
    """Return the bytes of all ranks, by rank; every rank calls this.

    ``label`` is the text of the call in errors (default: that of an all-gather).
    """
    size = dispatcher.link.size
    lengths = np.zeros(size, np.int64)
    _gather(dispatcher, lengths, np.array([len(data)], np.int64), (LENGTH_BYTES,) * size, label)
    every = np.zeros(int(lengths.sum()), np.uint8)
    if every.size:
        _gather(dispatcher, every, np.frombuffer(data, np.uint8), tuple(map(int, lengths)), label)
    ends = np.cumsum(lengths)
    return [every[end - length : end].tobytes() for end, length in zip(ends, lengths, strict=True)]


def _gather(dispatcher: Dispatcher, out: Any, own: Any, sizes: Sequence[int], label: str | None) -> None:
    request = CallRequest(all_gather, dtype="uint8", lengths=Lengths(tuple(sizes), tuple(sizes)), label=label)
    dispatcher.run(dispatcher.plan(request), own.ctypes.data, out.ctypes.data)
