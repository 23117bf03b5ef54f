"""Collectives while compute kernels fill the GPU: no rank waits forever, and the results are right.

Every rank keeps matrix products on a second stream, each of which has more thread blocks than fit on the GPU, while
the first stream runs collectives. Kernels that wait for each other must all be resident; products only delay them.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np
import torch

from gpu_jobs import Rows, select_device
from unisono.comm.communicator import Communicator

WIDTH = 4096  # of a matrix
PENDING = 3  # products that wait for the GPU
LENGTHS = (256, 65_536, 1 << 20)  # elements
CHECKED = 50  # calls between two checks of the results


class Load:
    """Products on a second stream that never runs empty."""

    def __init__(self, width: int) -> None:
        self.stream = torch.cuda.Stream()
        self.factor = torch.ones(width, width, device="cuda", dtype=torch.bfloat16)
        self.product = torch.empty_like(self.factor)
        self.events: deque[Any] = deque()
        self.stream.wait_stream(torch.cuda.current_stream())

    def refill(self) -> bool:
        """Enqueue products until enough are pending; return whether the GPU was busy with one all the time."""
        while self.events and self.events[0].query():
            self.events.popleft()
        was_busy = bool(self.events)
        with torch.cuda.stream(self.stream):
            while len(self.events) < PENDING:
                torch.mm(self.factor, self.factor, out=self.product)
                event = torch.cuda.Event()
                event.record()
                self.events.append(event)
        return was_busy


def occupy(comm: Communicator, rows_file: str, settings: dict[str, Any]) -> None:
    """Run collectives under load."""
    select_device(comm, settings["device"])
    rows = Rows(rows_file, comm.rank, mode=settings["mode"], ranks=comm.size)
    load = Load(settings.get("width", WIDTH)) if settings["device"] == "cuda" else None
    control = comm.duplicate()
    tensors = [torch.zeros(length, device=settings["device"]) for length in LENGTHS]
    total = comm.size * (comm.size + 1) // 2
    began = time.monotonic()
    failures = done = busy = 0
    for number in range(settings["count"]):
        if load is not None:
            busy += load.refill()
        tensor = tensors[number % len(tensors)]
        checked = number % CHECKED < len(LENGTHS)
        if checked:
            tensor.fill_(comm.rank + 1)
        comm.all_reduce(tensor)
        if checked:
            failures += not bool((tensor == total).all())
            tensor.zero_()
        done += 1
        if number % CHECKED == CHECKED - 1:
            late = np.array([time.monotonic() - began > settings["limit_s"]], np.int32)
            control.all_reduce(late, op="max")
            if late[0]:
                break
    if settings["device"] == "cuda":
        torch.cuda.synchronize()
    counts = np.array([failures])
    control.all_reduce(counts)
    least_busy = np.array([busy])
    control.all_reduce(least_busy, op="min")
    seconds = time.monotonic() - began
    rows.add(
        name="full occupancy", done=done, wanted=settings["count"], failures=int(counts[0]),
        note=f"the GPU was busy with products at {100 * int(least_busy[0]) // max(1, done)} % of the calls, on the "
        f"rank with the fewest; {seconds:.1f} s",
    )  # fmt: skip
    if counts[0]:
        raise SystemExit(f"{counts[0]} wrong results")
