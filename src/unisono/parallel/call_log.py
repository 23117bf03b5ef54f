"""A log of the collectives of a step: ``with record() as log:`` lists them in the order in which they start."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

# The phase of training in which a collective runs: before the first step, in the forward pass, in the backward pass,
# in the update after it, or between steps, when a state is saved or loaded.
PHASES = ("start", "forward", "backward", "update", "state")


@dataclass
class Entry:
    """A collective that this rank took part in.

    ``collective``: its name, such as "all_reduce".
    ``name``, ``dtype``: of the tensor.
    ``bytes``: of the larger tensor: the input of a reduction, the output of an all-gather.
    ``phase``: of the training step: "start", "forward", "backward", "update" or "state".
    ``size``: the number of ranks of the group.
    ``axis``: of the mesh, if there is one: "dp", "tp", ...
    ``codec``: the name of the codec, or an empty string.
    ``sent_bytes``: the least that each rank sends; algorithms with fewer steps send more.
    ``waited_s``: the time that this rank was blocked in the call, in seconds; with CUDA tensors, the time that its
    stream was, which is known at the end of the block.
    ``waits``: pairs of CUDA events around waits whose time is not known yet.
    """

    collective: str
    name: str
    bytes: int
    phase: str
    size: int
    axis: str = ""
    codec: str = ""
    dtype: str = ""
    sent_bytes: int = 0
    waited_s: float = 0.0
    waits: list[tuple[Any, Any]] = field(default_factory=list, repr=False, compare=False)

    def settle(self) -> None:
        """Add the waits of a CUDA stream, which have ended, to the time."""
        for began, ended in self.waits:
            ended.synchronize()
            self.waited_s += began.elapsed_time(ended) / 1000
        self.waits.clear()


@dataclass
class Log:
    """The collectives of a block, in the order in which they started; iterate over it, or print ``table()``.

    ``entries``: the list of collectives.
    """

    entries: list[Entry] = field(default_factory=list)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def of(self, phase: str) -> list[Entry]:
        """Return the entries of a ``phase``: "start", "forward", "backward", "update" or "state"."""
        return [entry for entry in self.entries if entry.phase == phase]

    @property
    def sent_bytes(self) -> int:
        """The bytes that each rank sends, at least."""
        return sum(entry.sent_bytes for entry in self.entries)

    @property
    def waited_s(self) -> float:
        """The time that this rank was blocked in collectives."""
        return sum(entry.waited_s for entry in self.entries)

    def table(self) -> str:
        """Return the entries as a Markdown table."""
        rows = ["| phase | collective | tensor | bytes | ranks |", "|---|---|---|---:|---|"]
        for entry in self.entries:
            ranks = f"{entry.size} ({entry.axis})" if entry.axis else str(entry.size)
            rows.append(f"| {entry.phase} | {entry.collective} | {entry.name} | {entry.bytes:,} | {ranks} |")
        return "\n".join(rows)


_open_logs: list[Log] = []


@contextmanager
def record() -> Iterator[Log]:
    """Log every collective that the strategies of this process start inside the block."""
    log = Log()
    _open_logs.append(log)
    try:
        yield log
    finally:
        _open_logs.remove(log)
        for entry in log.entries:
            entry.settle()


def has_open_log() -> bool:
    """Return whether a log is open."""
    return bool(_open_logs)


def add_entry(entry: Entry) -> Entry:
    """Append an entry to all open logs."""
    for log in _open_logs:
        log.entries.append(entry)
    return entry


@contextmanager
def timed(entry: Entry, on_cuda: bool) -> Iterator[None]:
    """Add the time that the block takes to an entry: on the host, or ``on_cuda`` on the current stream."""
    if on_cuda and not torch.cuda.is_current_stream_capturing():
        began, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        began.record()
        yield
        ended.record()
        entry.waits.append((began, ended))
        return
    start = time.perf_counter()
    try:
        yield
    finally:
        entry.waited_s += time.perf_counter() - start


class TimedWork:
    """A work that adds the time spent waiting to its entry."""

    def __init__(self, work: Any, entry: Entry, on_cuda: bool = False) -> None:
        self._work, self._entry, self._on_cuda = work, entry, on_cuda

    def wait(self) -> None:
        """Wait until the collective is complete; raise its error if it failed."""
        with timed(self._entry, self._on_cuda):
            self._work.wait()
