"""The barrier that names the ranks that have not reached it.

It goes through torch's store, which works while ranks are missing. Every other rank reports to rank 0; rank 0 answers
all of them with a **verdict**: the missing ranks, or ``null`` if its timeout was 0.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

from unisono.errors import CollectiveTimeout, CommError
from unisono.message import Message, listed
from unisono.torch_backend import messages

GRACE_S = 5.0  # for the verdict of rank 0
LEAST_S = 0.001  # for a key that is set already; some stores take 0 as forever


def monitored_barrier(store: Any, rank: int, size: int, name: str, seconds: float, wait_all_ranks: bool) -> None:
    """Wait until all ranks have reached the barrier; raise an error that names those that have not, on every rank.

    ``wait_all_ranks`` makes rank 0 look for all missing ranks, not only for the first.
    """
    base = f"unisono/barrier/{name}"
    if rank == 0:
        missing = _missing(store, base, size, seconds, wait_all_ranks) if seconds > 0 else None
        store.set(f"{base}/verdict", json.dumps({"missing": missing, "seconds": seconds}).encode())
        if missing != []:
            raise CollectiveTimeout(messages.BARRIER_ON_RANK_0(problem=_problem(missing, seconds)))
        return
    store.set(f"{base}/{rank}", b"here")
    # Rank 0 may have reached the barrier a little later, and names the missing ranks after its full timeout.
    patience_s = seconds + GRACE_S
    try:
        store.wait([f"{base}/verdict"], timedelta(seconds=patience_s))
        content = store.get(f"{base}/verdict")
    except RuntimeError:
        problem = messages.BARRIER_RANK_0_SILENT(seconds=patience_s)
    else:
        missing, rank_0_seconds = _verdict(content, f"{base}/verdict")
        if missing == []:
            return
        problem = _problem(missing, rank_0_seconds)
    raise CollectiveTimeout(messages.BARRIER_ON_OTHER_RANK(rank=rank, problem=problem))


def _missing(store: Any, base: str, size: int, seconds: float, wait_all_ranks: bool) -> list[int]:
    """Return the ranks that do not report to rank 0 in time: all of them, or only the first."""
    missing: list[int] = []
    deadline = time.monotonic() + seconds
    for other in range(1, size):
        left = max(LEAST_S, deadline - time.monotonic())
        try:
            store.wait([f"{base}/{other}"], timedelta(seconds=left))
        except RuntimeError:
            missing.append(other)
            if not wait_all_ranks:
                break
    return missing


def _verdict(content: bytes, key: str) -> tuple[list[int] | None, float]:
    """Return the missing ranks and the timeout of rank 0."""
    with suppress(ValueError, RecursionError):
        match json.loads(content):
            case {"missing": list() | None as missing, "seconds": float() | int() as seconds}:
                return missing, seconds
    raise CommError(messages.FOREIGN_STORE_CONTENT(call="monitored_barrier", key=key, content=repr(content[:80])))


def _problem(missing: list[int] | None, seconds: float) -> Message:
    """Return the sentence about the missing ranks; None for them if rank 0 had no time to look."""
    if missing is None:
        return messages.BARRIER_WITHOUT_TIME()
    template = messages.BARRIER_RANK_MISSING if len(missing) == 1 else messages.BARRIER_RANKS_MISSING
    return template(ranks=listed(map(str, missing)), milliseconds=seconds * 1000)
