"""The costs of the processor of a rank: what it spends on a message besides the time on the links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NO_SENDS, LONG_SENDS, ALL_SENDS = "none", "long", "all"  # that block
SHORTEST_MAPPED_BYTES = 128 * 1024  # a C library keeps shorter buffers in its heap


@dataclass(frozen=True)
class Endpoint:
    """The processor of a rank. Every cost is zero unless it is given: then hardware does the work.

    ``send_overhead_s`` and ``receive_overhead_s`` keep the processor busy for each message, ``send_s_per_byte`` and
    ``receive_s_per_byte`` for each byte that it copies to or from a message, ``reduce_s_per_byte`` for each byte that
    a receive combines with the bytes already there, and ``copy_s_per_byte`` for each byte of a local copy.

    ``call_overhead_s`` is spent once for each call of a collective, before its first message: entering the
    library, or starting a kernel.

    A message of up to ``inline_bytes`` leaves with the instruction that sends it; a longer one is first fetched from
    memory and arrives ``fetch_s`` later (``inline_bytes`` None: no message is fetched).

    A message of up to ``eager_bytes`` is staged on its way, and arrives ``eager_s_per_byte`` later for each of its
    bytes; messages that follow each other are staged at the same time. A longer one uses a rendezvous: its bytes move
    only when both sides are ready, and ``rendezvous_s`` and ``rendezvous_trips`` times the latency of the route later
    than otherwise, but without ``send_s_per_byte`` and ``receive_s_per_byte``: hardware moves them (``eager_bytes``
    None: never, and nothing is staged).

    Every rendezvous waits for both sides, so the delay of one rank spreads to others: the k-th step of a rank with a
    rendezvous takes ``jitter_s`` times ln k longer, in proportion to the bytes of its message up to ``jitter_bytes``
    (None: in full). ln k is how the expected maximum of k delays grows if they have an exponential distribution.

    ``blocking_sends`` says which sends return only when the message has left: none, long ones (those with a
    rendezvous), or all. A rank that sends in several steps without receiving in between sends the next one later.

    Where two ranks send each other one message each in the same step, only the first ``exchange_bytes`` of each move
    in both directions at once; for the rest the two directions take turns (``exchange_bytes`` None: never).

    Where a call works on more than ``cache_bytes``, the four costs per byte are ``beyond_cache`` times as high
    (``cache_bytes`` None: never).

    ``synchronous`` is the assumption of textbook formulas: a message moves when both sides are ready, and occupies a
    port of both until it has arrived. Otherwise it occupies a port only for the time of its bytes, and not for the
    latency, and needs nothing of the receiver but where a rendezvous is used.

    ``segment_bytes`` is the longest part of a chunk that is sent at once (None: as Unisono's engine cuts chunks).

    Where ``copies_input`` is set, a reduction first copies its vector, as libraries that keep the input do.

    A library that uses temporary buffers spends ``allocate_s_per_byte`` on those that the C library gets from the
    system in each call: page faults and the registration with the NIC. These are buffers of at least ``mapped_bytes``
    (None: never) and, where ``trims_heap`` is set, several of the same length, which the heap does not keep; see
    ``fresh_bytes``. The programs of Unisono use none.

    ``ports`` is the number of messages that a rank sends, and the number that it receives, at the same time.
    """

    send_overhead_s: float = 0.0
    receive_overhead_s: float = 0.0
    send_s_per_byte: float = 0.0
    receive_s_per_byte: float = 0.0
    reduce_s_per_byte: float = 0.0
    copy_s_per_byte: float = 0.0
    call_overhead_s: float = 0.0
    inline_bytes: int | None = None
    fetch_s: float = 0.0
    eager_bytes: int | None = None
    eager_s_per_byte: float = 0.0
    rendezvous_s: float = 0.0
    rendezvous_trips: int = 0
    jitter_s: float = 0.0
    jitter_bytes: int | None = None
    blocking_sends: str = NO_SENDS
    exchange_bytes: int | None = None
    cache_bytes: int | None = None
    beyond_cache: float = 1.0
    segment_bytes: int | None = None
    copies_input: bool = False
    allocate_s_per_byte: float = 0.0
    mapped_bytes: int | None = None
    trims_heap: bool = False
    ports: int = 1
    synchronous: bool = False

    def fresh_bytes(self, buffers: Sequence[float], others: Sequence[float] = ()) -> float:
        """Return the bytes of temporary buffers that a call gets from the system, and not from the heap.

        ``others`` are buffers that are only received into. They count for what the heap keeps, and cost nothing: a
        NIC that registers them gets all their pages at once.
        """
        longest, total = max([*buffers, *others], default=0.0), sum(buffers) + sum(others)
        if self.mapped_bytes is not None and longest >= self.mapped_bytes:
            return float(sum(each for each in buffers if each >= self.mapped_bytes))
        # The heap keeps as much as twice the longest buffer that it has seen, so two of that length are too many.
        if self.trims_heap and longest > SHORTEST_MAPPED_BYTES and total >= 2 * longest:
            return float(sum(buffers))
        return 0.0
