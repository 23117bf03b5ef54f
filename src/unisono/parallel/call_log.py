"""Which collectives a step makes: ``with record() as log:`` lists them in the order in which they are started."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

# When in a step a collective runs: before the first one, in the forward pass, in the backward pass, or after it, when
# the optimiser has changed the parameters; or between steps, when a state is saved or loaded.
PHASES = ("start", "forward", "backward", "update", "state")


@dataclass
class Entry:
    """One collective that this rank took part in."""

    collective: str
    name: str  # of the tensor
    bytes: int  # of the tensor that is shared: the input where each rank gives all, the output where each gets all
    phase: str  # one of PHASES
    size: int  # ranks of the group
    axis: str = ""  # of the mesh, where there is one: "dp", "tp", ...
    codec: str = ""
    dtype: str = ""  # of the tensor
    sent_bytes: int = 0  # by each rank, at least: algorithms that need fewer steps send more
    waited_s: float = 0.0  # how long the rank stood still for it: its exposed time


@dataclass
class Log:
    """What was recorded."""

    entries: list[Entry] = field(default_factory=list)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def of(self, phase: str) -> list[Entry]:
        """Return what ran in a phase."""
        return [entry for entry in self.entries if entry.phase == phase]

    @property
    def sent_bytes(self) -> int:
        """How many bytes a rank sends, at least."""
        return sum(entry.sent_bytes for entry in self.entries)

    @property
    def waited_s(self) -> float:
        """How long this rank stood still for communication."""
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
    """Record every collective that the strategies of this process make inside the block."""
    log = Log()
    _open_logs.append(log)
    try:
        yield log
    finally:
        _open_logs.remove(log)


def has_open_log() -> bool:
    """Whether anybody wants to know."""
    return bool(_open_logs)


def add_entry(entry: Entry) -> Entry:
    """Write an entry into all logs that are open."""
    for log in _open_logs:
        log.entries.append(entry)
    return entry


class TimedWork:
    """A work whose waiting is added to its entry."""

    def __init__(self, work: Any, entry: Entry) -> None:
        self._work, self._entry = work, entry

    def wait(self) -> None:
        """Wait until the collective is over; raise what went wrong with it."""
        began = time.perf_counter()
        try:
            self._work.wait()
        finally:
            self._entry.waited_s += time.perf_counter() - began
