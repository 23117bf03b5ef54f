"""The result of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from unisono.simulator.actions import Array
from unisono.simulator.timeline import Timeline


@dataclass(frozen=True)
class LinkLoad:
    """The load of one link: the bytes that it carries, and the part of the time for which they occupy it."""

    name: str
    bytes: float
    utilisation: float


@dataclass(frozen=True)
class Hop:
    """A part of the critical path: an action of a rank, or a message to it (``kind`` is "action" or "message").

    ``step`` counts from 0 and ``segment`` is the number of the pass. ``peer`` is the sender of a message.
    """

    kind: str
    rank: int
    step: int
    segment: int
    start_s: float
    end_s: float
    peer: int | None = None
    bytes: float = 0.0


@dataclass(frozen=True)
class CriticalPath:
    """The chain of actions and messages that determines the time; the parts add up to it.

    ``bandwidth_s`` is the time for the bytes on the links, ``overhead_s`` that of processors for each message,
    ``copy_s`` for copying bytes and ``reduce_s`` for adding them; ``waiting_s`` is spent in queues: for a port, for a
    link that others use, for the other side of a rendezvous, or for a processor that is busy with another pass.
    """

    hops: tuple[Hop, ...]
    latency_s: float
    bandwidth_s: float
    overhead_s: float
    copy_s: float
    reduce_s: float
    waiting_s: float


@dataclass(frozen=True)
class Prediction:
    """The time that a schedule takes on a network.

    - ``algorithm``, ``network``, ``size`` (ranks) and ``nbytes`` (of the vector) say what was simulated.
    - ``time_s`` is the time until the last rank has finished; ``rank_s`` that of each rank.
    - ``level_s`` is the time at which each level ends (a level: the steps on the same depth of the longest path).
    - ``idle_s`` is the time for which the processor of each rank waits, until that rank has finished.
    - ``links`` are the busiest links, the busiest first.
    - ``critical_path`` is None where the simulation was too large to record it.
    - ``latency_bound_s`` and ``bandwidth_bound_s`` are times below which no algorithm can get on this network.
    - ``messages`` counts the messages of all ranks and passes; ``passes`` the segments of each chunk.
    - ``method`` says how it was simulated: "rank by rank", or "folded into k classes".
    - ``contention`` says whether messages share the bandwidth of links. ``contention_ignored``: messages of several
      ranks use the same link, and each was simulated as if it were alone there, because the caller asked for that or
      because sharing would have been too large to simulate.
    - ``range_s``: the times with the fastest and the slowest routes of each class, where similar ranks were folded
      into one class with the average costs of their routes; None where the ranks of a class do not differ.
    - ``timeline`` has the times of all messages and steps, where they were asked for.
    """

    algorithm: str
    network: str
    size: int
    nbytes: int
    time_s: float
    rank_s: Array = field(repr=False)
    level_s: tuple[float, ...] = field(repr=False)
    idle_s: Array = field(repr=False)
    links: tuple[LinkLoad, ...] = field(repr=False)
    critical_path: CriticalPath | None = field(repr=False)
    latency_bound_s: float
    bandwidth_bound_s: float
    messages: int
    passes: int
    method: str
    contention: bool
    contention_ignored: bool = False
    range_s: tuple[float, float] | None = None
    timeline: Timeline | None = field(default=None, repr=False)

    @property
    def latency_ratio(self) -> float:
        """The time divided by the latency bound (infinite if the bound is zero)."""
        return self.time_s / self.latency_bound_s if self.latency_bound_s else float("inf")

    @property
    def bandwidth_ratio(self) -> float:
        """The time divided by the bandwidth bound (infinite if the bound is zero)."""
        return self.time_s / self.bandwidth_bound_s if self.bandwidth_bound_s else float("inf")

    @cached_property
    def waiting_s(self) -> float:
        """The time that a rank loses waiting, on average."""
        return float(np.mean(self.idle_s)) if len(self.idle_s) else 0.0

    @property
    def bandwidth(self) -> float:
        """The bytes of the vector divided by the time (nccl-tests: algbw), in bytes per second."""
        return self.nbytes / self.time_s if self.time_s else float("inf")

    def as_data(self) -> dict[str, Any]:
        """Return everything that JSON can hold; arrays of ranks are summarised."""
        path = self.critical_path
        parts = None if path is None else {
            name: getattr(path, name)
            for name in ("latency_s", "bandwidth_s", "overhead_s", "copy_s", "reduce_s", "waiting_s")
        }  # fmt: skip
        return {
            "algorithm": self.algorithm, "network": self.network, "size": self.size, "bytes": self.nbytes,
            "time_s": self.time_s, "first_rank_s": float(self.rank_s.min()), "level_s": list(self.level_s),
            "waiting_s": self.waiting_s, "latency_bound_s": self.latency_bound_s,
            "bandwidth_bound_s": self.bandwidth_bound_s, "messages": self.messages, "passes": self.passes,
            "method": self.method, "contention": self.contention, "contention_ignored": self.contention_ignored,
            "range_s": self.range_s, "critical_path": parts,
            "links": [vars(link) for link in self.links],
        }  # fmt: skip
