"""The hosts of a job: which ranks share memory.

A **host** is a set of ranks that can map the same memory: they run on one kernel, in the same network and PID
namespaces, as the same user. Two containers on one machine are usually two hosts. Ranks of the same host are
**near** each other, and ranks of different hosts are **far** from each other. A host has any number of ranks, in any
order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# The parts of a host identity (locality.py) that ranks of one host share. The name is for people only.
SHARED = ("kernel", "network", "processes", "users", "user")


@dataclass(frozen=True)
class HostMap:
    """The host of each rank of a communicator. Hosts are numbered in the order of their lowest ranks."""

    names: tuple[str, ...]  # by host
    host_of: tuple[int, ...]  # by rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self.host_of)

    @property
    def count(self) -> int:
        """The number of hosts."""
        return len(self.names)

    @property
    def rank_counts(self) -> tuple[int, ...]:
        """The number of ranks on each host."""
        return tuple(self.host_of.count(host) for host in range(self.count))

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The ranks on each host."""
        return tuple(tuple(self.ranks_on(host)) for host in range(self.count))

    def ranks_on(self, host: int) -> list[int]:
        """Return the ranks on a host, in ascending order."""
        return [rank for rank, its_host in enumerate(self.host_of) if its_host == host]

    def near(self, rank: int) -> list[int]:
        """Return the ranks on the host of ``rank``, including ``rank``; the first of them is the host's leader."""
        return self.ranks_on(self.host_of[rank])

    def far(self, rank: int) -> list[bool]:
        """Return for each rank whether it is far from ``rank``."""
        return [host != self.host_of[rank] for host in self.host_of]

    def name(self, rank: int) -> str:
        """Return the name of the host of a rank."""
        return self.names[self.host_of[rank]]

    def of(self, members: Sequence[int]) -> HostMap:
        """Return the map of a communicator whose rank r is rank ``members[r]`` here."""
        return _numbered([(self.host_of[rank], self.name(rank)) for rank in members])


def hosts_of(identities: Sequence[Mapping[str, str]]) -> HostMap:
    """Return the map of ranks with these host identities (``locality.host_info``), by rank."""
    return _numbered([(tuple(identity[part] for part in SHARED), identity["host"]) for identity in identities])


def single_host(size: int, name: str) -> HostMap:
    """Return the map of ranks that are all on one host."""
    return HostMap((name,), (0,) * size)


def _numbered(keys: Sequence[tuple[Any, str]]) -> HostMap:
    """Return the map of ranks whose hosts have these keys and names."""
    numbers: dict[Any, int] = {}
    names: list[str] = []
    for key, name in keys:
        if key not in numbers:
            numbers[key] = len(numbers)
            names.append(name)
    return HostMap(tuple(names), tuple(numbers[key] for key, _ in keys))
