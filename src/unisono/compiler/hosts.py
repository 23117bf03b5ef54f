"""The hosts of a communicator, as the compiler sees them: ranks of one host share a channel to all of them.

*Near* ranks share a host; *far* ranks do not.
"""

from __future__ import annotations

# The ranks of each host. None stands for one host with all ranks.
Hosts = tuple[tuple[int, ...], ...]


def near_peers(rank: int, size: int, hosts: Hosts | None) -> tuple[int, ...]:
    """Return the other ranks of the host of a rank, in ascending order: the readers of its channel to all."""
    ranks = range(size) if hosts is None else next(ranks for ranks in hosts if rank in ranks)
    return tuple(sorted(peer for peer in ranks if peer != rank))
