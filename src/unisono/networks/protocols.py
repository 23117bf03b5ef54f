"""Protocols: other ways to send a message over the same links, with other latencies and bandwidths.

Libraries for accelerators have several. NCCL's *LL* writes a flag next to each 4 bytes, so that the receiver sees
data as soon as they arrive, at half the bandwidth; *LL128* has 8 flag bytes in 128; *Simple* fills buffers and then
signals, which costs several microseconds and no bandwidth. A call uses one protocol for all its messages.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Protocol:
    """Costs that replace those of the network: latency inside a host and between hosts, and the cost of a call.

    ``efficiency`` is the part of the bandwidth that carries data, above 0 and at most 1; ``far_efficiency`` is that
    between hosts (None: the same).
    """

    name: str
    near_latency_s: float
    far_latency_s: float
    efficiency: float = 1.0
    far_efficiency: float | None = None
    call_overhead_s: float = 0.0
