"""The barrier that says who is missing. It goes through torch's store, which does not need everybody to be there."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any, NoReturn

from unisono.errors import CollectiveTimeout

GRACE_S = 5.0  # for the verdict of rank 0
LEAST_S = 0.001  # for something that is there already; some stores take 0 as forever


def monitored_barrier(store: Any, rank: int, size: int, name: str, seconds: float, wait_all_ranks: bool) -> None:
    """Wait until all ranks have come; raise on rank 0 with the ranks that have not, and on the others with that."""
    base = f"unisono/barrier/{name}"
    if rank != 0:
        store.set(f"{base}/{rank}", b"here")
        try:
            # Rank 0 may have come a little later, and says after the full time who is missing.
            store.wait([f"{base}/verdict"], timedelta(seconds=seconds + GRACE_S))
            verdict = store.get(f"{base}/verdict").decode()
        except RuntimeError:
            verdict = f"rank 0 did not answer within {seconds + GRACE_S:g} s"
        if verdict != "all":
            raise CollectiveTimeout(
                f"Rank {rank} successfully reached monitoredBarrier, but received errors while waiting for send/recv "
                f"from rank 0: {verdict}"
            )
        return
    if seconds <= 0:
        _give_up(store, base, "Rank 0 timed out in monitoredBarrier after 0 ms, before it could ask anyone")
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
    if not missing:
        store.set(f"{base}/verdict", b"all")
        return
    who = "Rank" if len(missing) == 1 else "Ranks"
    _give_up(
        store, base, f"{who} {', '.join(map(str, missing))} failed to pass monitoredBarrier in {seconds * 1000:g} ms"
    )


def _give_up(store: Any, base: str, verdict: str) -> NoReturn:
    store.set(f"{base}/verdict", verdict.encode())
    raise CollectiveTimeout(f"[Rank 0]: {verdict}")
