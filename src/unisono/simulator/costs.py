"""The time that each action and each message takes, from the network and the sizes of a call.

All chunks of a call have the same length, the average: on real ranks they differ by one element, which would make
ranks different that behave alike. A call runs in one or several passes; all passes but the last move whole segments.
Arrays with a first axis of length 2 hold the values of a whole segment, and of the last one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unisono.codecs.codec import Codec
from unisono.networks import Endpoint, Network
from unisono.networks.endpoint import ALL_SENDS, NO_SENDS
from unisono.simulator.actions import COMBINE_KIND, COPY_KIND, REDUCE_KIND, Array, Programs
from unisono.simulator.rendezvous import rendezvous_of, sending_waits

WHOLE, LAST = 0, 1
FLOAT32_BYTES = 4
# Times are multiples of this, so that sums of them are exact up to two minutes: what happens at the same time on
# symmetric ranks gets the same number there, in whatever order it was added up.
QUANTUM_S = 2.0**-46


class Cut(NamedTuple):
    """The segments of a call: bytes of a chunk in memory and on the wire, in a whole and in the last pass."""

    passes: int
    tracks: int
    memory_bytes: tuple[float, float]
    wire_bytes: tuple[float, float]
    working_set: float  # bytes that the call works on
    encoded: bool = False


def cut(
    nbytes: float, chunks: int, segment: float, passes: int, tracks: int, codec: Codec | None, working_set: float
) -> Cut:
    """Return the segments of a vector of ``nbytes`` in ``chunks`` chunks."""
    length = nbytes / chunks
    last = max(0.0, length - (passes - 1) * segment) if passes > 1 else length
    memory = ((length - last) / (passes - 1) if passes > 1 else length, last)
    if codec is None:
        return Cut(passes, min(passes, tracks), memory, memory, working_set)
    whole, rest = (float(codec.wire_bytes(-(-int(each) // FLOAT32_BYTES))) for each in memory)
    return Cut(passes, min(passes, tracks), memory, (whole, rest), working_set, encoded=True)


@dataclass(frozen=True)
class Costs:
    """Seconds of actions and of the messages that they receive; the first axis of two is WHOLE or LAST."""

    passes: int
    tracks: int
    ports: int
    receive_overhead_s: Array  # the parts of the time for which the processor is busy before it sends
    receive_copy_s: Array  # (2, actions)
    reduce_s: Array  # (2, actions)
    send_overhead_s: Array  # (2, actions)
    send_copy_s: Array  # (2, actions)
    latency_s: Array  # of the message that an action receives
    transfer_s: Array  # (2, actions): of its bytes
    flight_s: Array  # the time until the head of the message has arrived
    occupied_s: Array  # (2, actions): the time for which the message occupies a port of its receiver
    leaving_s: Array  # (2, actions): the time for which the message that an action sends occupies a port
    rendezvous_s: Array  # (2, actions): extra latency where both sides must be ready; -1 where the message is eager
    message_bytes: Array  # (2, actions): of each message that an action receives or sends
    link_bytes: Array  # (2, actions): for which a message that an action receives occupies its links
    pair: Array  # the index of the route of the message in ``routes``; -1 if the action receives nothing
    routes: Array  # (pairs, hops): links; -1 where there are fewer
    weights: Array | None = None  # (pairs, hops): the flows on a link for each message, where not 1 (link_sharing.py)

    @property
    def busy_s(self) -> Array:
        """The time for which an action keeps the processor busy."""
        receiving = self.receive_overhead_s + self.receive_copy_s + self.reduce_s
        busy: Array = receiving + (self.send_overhead_s + self.send_copy_s)
        return busy


def quantised(seconds: Array) -> Array:
    """Return times rounded to multiples of QUANTUM_S."""
    rounded: Array = seconds / QUANTUM_S
    np.rint(rounded, out=rounded)
    rounded *= QUANTUM_S
    return rounded


def costs_of(programs: Programs, network: Network, sizes: Cut, of_routes: tuple[Array, Array] | None = None) -> Costs:
    """Compute the time of every action and message.

    ``of_routes``: latency and seconds per byte of the message that each action receives, where they are not those of
    the rank that stands for a class.
    """
    rows, end = programs.rows, network.endpoint
    beyond = end.beyond_cache if end.cache_bytes is not None and sizes.working_set > end.cache_bytes else 1.0
    chunks, kind = rows["chunks"].astype(float), rows["kind"]
    receives, sends = rows["source"] >= 0, rows["to"] >= 0
    memory = np.array(sizes.memory_bytes)[:, np.newaxis] * chunks
    wire = np.array(sizes.wire_bytes)[:, np.newaxis] * chunks
    coding = end.copy_s_per_byte if sizes.encoded else 0.0
    # A rendezvous moves the bytes of a message without the processors.
    handled = wire if end.eager_bytes is None else np.where(wire <= end.eager_bytes, wire, 0.0)
    copied = np.where(receives, handled * end.receive_s_per_byte + memory * coding, 0.0)
    copied += np.where(kind == COPY_KIND, memory * end.copy_s_per_byte, 0.0)
    adds = (kind == REDUCE_KIND) | (kind == COMBINE_KIND)
    pair, routes, latency, bandwidth = _routes(programs, network)
    if of_routes is not None:
        latency, bandwidth = of_routes[0], np.divide(1.0, of_routes[1], where=of_routes[1] > 0, out=bandwidth)
    on_links = wire + _turns(programs, wire, end)
    latency, transfer = quantised(latency), quantised(np.where(receives, on_links / bandwidth, 0.0))
    # Whole and last segments have the same flight: it depends little on their length.
    flight = latency + quantised(np.where(receives, _staging(wire[WHOLE], end), 0.0))
    occupied = transfer
    if end.synchronous:
        flight, occupied = np.zeros_like(latency), flight + transfer
        rendezvous = np.broadcast_to(np.where(receives, 0.0, -1.0), wire.shape).copy()
    else:
        rendezvous = rendezvous_of(programs, wire, latency, end)
        rendezvous = np.where(rendezvous >= 0.0, quantised(rendezvous), -1.0)
    sending = np.broadcast_to(np.where(sends, end.send_overhead_s, 0.0), wire.shape)
    if end.blocking_sends != NO_SENDS:
        delay = flight - latency if end.blocking_sends == ALL_SENDS else None
        sending = sending + sending_waits(programs, transfer, delay, rendezvous)
    leaving = np.zeros_like(wire)
    for which in (WHOLE, LAST):
        np.maximum.at(leaving[which], programs.sender[receives], occupied[which][receives])
    return Costs(
        passes=sizes.passes, tracks=sizes.tracks, ports=end.ports,
        receive_overhead_s=quantised(np.where(receives, end.receive_overhead_s, 0.0)),
        receive_copy_s=quantised(beyond * copied),
        reduce_s=quantised(np.where(adds, beyond * end.reduce_s_per_byte * memory, 0.0)),
        send_overhead_s=quantised(sending),
        send_copy_s=quantised(beyond * np.where(sends, handled * end.send_s_per_byte + memory * coding, 0.0)),
        latency_s=latency, transfer_s=transfer, flight_s=flight, occupied_s=occupied, leaving_s=leaving,
        rendezvous_s=rendezvous, message_bytes=wire, link_bytes=on_links, pair=pair, routes=routes,
    )  # fmt: skip


def _staging(wire: Array, end: Endpoint) -> Array:
    """Return the time for which messages are fetched and staged on their way, which does not occupy links."""
    delay = np.zeros_like(wire)
    if end.inline_bytes is not None:
        delay += np.where(wire > end.inline_bytes, end.fetch_s, 0.0)
    if end.eager_bytes is not None:
        delay += np.where(wire <= end.eager_bytes, wire * end.eager_s_per_byte, 0.0)
    return delay


def _turns(programs: Programs, wire: Array, end: Endpoint) -> Array:
    """Return the bytes for which a message waits while the other direction of its exchange has its turn."""
    if end.exchange_bytes is None:
        return np.zeros_like(wire)
    exchanged: Array = np.maximum(wire - end.exchange_bytes, 0.0)
    return np.where(_exchanges(programs), exchanged, 0.0)


def _exchanges(programs: Programs) -> Array:
    """Return which actions receive the only message of a step in which their unit sends one, to the same peer."""
    rows, unit = programs.rows, programs.unit.astype(np.int64)
    receiving, sending = programs.receives, np.flatnonzero(rows["to"] >= 0)
    steps = int(max(rows["step"].max(initial=0), rows["sent_step"].max(initial=0))) + 1
    received = unit[receiving] * steps + rows["step"][receiving]
    sent = unit[sending] * steps + rows["sent_step"][sending]
    alone, first = np.unique(sent, return_index=True)
    only = np.diff(np.append(np.searchsorted(np.sort(sent), alone), len(sent))) == 1
    peer = dict(zip(alone[only].tolist(), rows["to"][sending[first[only]]].tolist(), strict=True))
    keys, counts = np.unique(received, return_counts=True)
    single = set(keys[counts == 1].tolist())
    found = np.zeros(len(rows), dtype=bool)
    found[receiving] = [
        key in single and peer.get(key) == source
        for key, source in zip(received.tolist(), rows["source"][receiving].tolist(), strict=True)
    ]
    return found


def _routes(programs: Programs, network: Network) -> tuple[Array, Array, Array, Array]:
    """Return the route of each receive as an index, the routes, and the latency and bandwidth of each receive."""
    size, count = programs.size, len(programs.rows)
    receiving = programs.receives
    key = programs.rows["source"][receiving].astype(np.int64) * size + programs.rank[receiving]
    pairs, inverse = _distinct(key, size * size)
    routes = network.routes(size, pairs // size, pairs % size)
    links = network.links(size)
    pair = np.full(count, -1, dtype=np.int64)
    pair[receiving] = inverse
    latency, bandwidth = np.zeros(count), np.full(count, np.inf)
    if routes.shape[1] and len(links):
        used = routes >= 0
        latency[receiving] = np.where(used, links.latency_s[routes], 0.0).sum(axis=1)[inverse]
        bandwidth[receiving] = np.where(used, links.bandwidth[routes], np.inf).min(axis=1)[inverse]
    return pair, routes, latency, bandwidth


def _distinct(keys: Array, end: int) -> tuple[Array, Array]:
    """Return the distinct keys, which are less than ``end``, in order, and the index of each key among them."""
    if end > 4 * len(keys):
        pairs, inverse = np.unique(keys, return_inverse=True)
        return pairs, inverse
    present = np.zeros(end, bool)  # a table is faster than sorting where there are nearly as many keys
    present[keys] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[keys]
