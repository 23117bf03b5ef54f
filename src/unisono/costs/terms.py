"""The cost terms of a program: what lies on its critical path, in messages and chunks, for any network and size.

A *path* is a chain of sends, messages and receives, each of which waits for the one before. The time of a call is
that of its longest path, and which path is the longest depends on the network and the size. The terms of a program
therefore hold a few paths, the longest ones under very different conditions; the longest of them under the conditions
of a call is a close estimate of the longest of all.

Counts of bytes are in chunks, so that the terms hold for every size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Path(NamedTuple):
    """What lies on a path: numbers of events, and numbers of chunks."""

    near: float = 0  # messages between ranks of a host
    far: float = 0  # messages between hosts
    sends: float = 0  # a message to all near ranks counts once
    receives: float = 0
    locals: float = 0  # copies and sums inside a rank
    sent: float = 0  # chunks that a rank writes into messages
    passing: float = 0  # chunks among them that stay inside the host
    received: float = 0  # chunks that a rank reads from messages
    reduced: float = 0  # chunks that are combined with others
    copied: float = 0  # chunks that are copied inside a rank
    crossings: float = 0  # messages on the link of a host, or on a NIC, one after the other
    crossing: float = 0  # their chunks
    contended: float = 0  # chunks among them that share a link with messages of another pair of hosts
    read: float = 0  # chunks of its arrays that a rank reads for a message, or to add one to them
    written: float = 0  # chunks that a rank writes to its arrays from a message, beside those that it has just read
    handshakes: float = 0  # messages one after the other, where both sides must be ready
    exchanged: float = 0  # chunks that wait while the other direction of an exchange has its turn


class Part(NamedTuple):
    """A path through the first pass of a call, and what every further pass adds to it."""

    first: Path
    further: Path


@dataclass(frozen=True)
class Terms:
    """The cost terms of a program on a topology.

    ``work`` is the sum over the ranks of the busiest host, of which there are ``ranks``, and ``link`` the number of
    chunks that cross the busiest link of a host, both for one pass. ``chunks`` and ``most_sent`` determine the number
    of passes: the chunks of the vector, and those that a rank sends at most.
    """

    chunks: int
    most_sent: int
    parts: tuple[Part, ...]
    work: Path
    ranks: int
    link: float
