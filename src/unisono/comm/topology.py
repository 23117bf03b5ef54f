"""The topology of a communicator: the number of ranks on each of its hosts, as tables and messages write it.

======== =============================================
``8``    eight ranks on one host
``2x4``  two hosts with four ranks each
``3+1``  a host with three ranks and a host with one
======== =============================================

The order of the hosts and the placement of the ranks on them do not matter to the topology.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from unisono.collectives import Collective, all_to_all
from unisono.compiler import Hosts

MOST_RANKS = 1_000_000
LONGEST_KEY = 1000  # characters


def topology_of(size: int, hosts: Hosts | None) -> str:
    """Return the topology of ``size`` ranks on these hosts; None stands for one host."""
    if hosts is None or len(hosts) == 1:
        return str(size)
    counts = sorted(map(len, hosts), reverse=True)
    return f"{len(counts)}x{counts[0]}" if len(set(counts)) == 1 else "+".join(map(str, counts))


def rank_counts(topology: str) -> tuple[int, ...] | None:
    """Return the number of ranks on each host, the largest first; None if the text is not a topology."""
    if not topology.isascii() or len(topology) > LONGEST_KEY:
        return None
    many, times, each = topology.partition("x")
    texts = [many, each] if times else topology.split("+")
    if not all(text.isdecimal() and len(text) < 8 and int(text) > 0 for text in texts):
        return None
    numbers = [int(text) for text in texts]
    total = numbers[0] * numbers[1] if times else sum(numbers)
    if total > MOST_RANKS:
        return None
    counts = (numbers[1],) * numbers[0] if times else tuple(sorted(numbers, reverse=True))
    return counts if topology == topology_of(total, hosts_of(counts)) else None


def hosts_of(counts: tuple[int, ...]) -> Hosts:
    """Return hosts with these numbers of consecutive ranks."""
    starts = [sum(counts[:host]) for host in range(len(counts))]
    return tuple(tuple(range(start, start + count)) for start, count in zip(starts, counts, strict=True))


def least_crossing(collective: Collective, counts: Sequence[int]) -> Fraction:
    """Return the least part of the vector that must cross the link of the busiest host, in one direction.

    ``counts`` are the numbers of ranks on the hosts; the root of a rooted collective is on the first host. For
    all_reduce on h hosts it is 2(h-1)/h.
    """
    size, hosts = sum(counts), len(counts)
    if hosts == 1 or not collective.carries_data:
        return Fraction(0)
    if collective is all_to_all:  # every rank of a host has a block for every rank elsewhere
        return max(Fraction(count * (size - count), size) for count in counts)
    if not collective.blocked:  # the ranks of a host share what enters, and combine what leaves
        return collective.bus_factor(hosts)
    inside = counts[0] if collective.rooted else min(counts)  # the blocks that do not cross the busiest link
    return Fraction(size - inside, size)
