"""Predicts the time of a call of NCCL: NCCL's choice of algorithm and protocol, timed by the simulator.

NCCL runs the same ring, or pair of trees, on several *channels* at the same time, each over other NICs, with an equal
part of the vector: the simulator runs one of them. A call takes the longer of two times: that of the network, and
that of the host to enqueue the call (nccl-tests enqueues calls one after the other without waiting).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from grading.nccl_choice import LL, NVLS, RING, SIMPLE, TREE, Tuner
from grading.nccl_programs import chains_and_trees
from unisono.algorithms.catalogue import find
from unisono.networks import Network, Switch
from unisono.schedule import Schedule

ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
MOST_LL_MESSAGE = 16 << 10  # NCCL_P2P_LL_THRESHOLD
THREADS = 512  # of a channel
THREAD_BYTES = {LL: 8, SIMPLE: 64}  # a channel is used for each THREADS * THREAD_BYTES bytes; LL: times ranks
# The part of a vector that a tree sends at once is at most MOST_PART. It is halved, but not below the first number of
# an entry, while there are fewer parts than the depth of the tree times the second number.
MOST_PART, LL_PART = 512 << 10, 32 << 10
TREE_PARTS = ((128 << 10, 8), (64 << 10, 4), (32 << 10, 1))
Simulate = Callable[..., Any]


@dataclass(frozen=True)
class Library:
    """NCCL on a machine. ``network`` has the protocols of NCCL; its own costs are those of Simple.

    The host needs ``host_call_s`` for a call, ``host_channel_s`` for each further channel that the call uses, and
    ``host_peer_s`` for each send and receive of an all-to-all, which NCCL does not have: nccl-tests makes it of them.
    A message between hosts that is longer than ``eager_bytes`` arrives ``rendezvous_s`` later (None: none does).
    Where messages are ``buffered`` (TCP), a rank does not wait for its peers in an all-to-all, and the bandwidth of a
    NIC is that of one connection. ``tuner`` chooses the algorithm; without one, the best is taken (as plugins that
    were tuned on the machine do).
    """

    name: str
    network: Network
    tuner: Tuner | None = None
    most_channels: int = 32
    host_call_s: float = 0.0
    host_channel_s: float = 0.0
    host_peer_s: float = 0.0
    eager_bytes: int | None = None
    rendezvous_s: float = 0.0
    buffered: bool = False

    def variant(self, protocol: str, message_bytes: int) -> Network:
        """Return the network with the costs of a protocol for messages of a length."""
        names = [SIMPLE, *(each.name for each in self.network.protocols)]
        network = self.network.variants()[names.index(protocol)]
        if self.eager_bytes is None or message_bytes <= self.eager_bytes:
            return network
        return replace(network, nics=replace(network.nics, latency_s=network.nics.latency_s + self.rendezvous_s))


def predict(library: Library, collective: str, nbytes: int, size: int, simulate: Simulate) -> float:
    """Return the time of a call in seconds; ``nbytes`` is the whole vector, as in nccl-tests."""
    network = library.network
    per_host = min(size, network.ranks_per_host)
    hosts = network.hosts_of(size)
    if collective == ALL_TO_ALL:
        return max(library.host_call_s + 2 * size * library.host_peer_s, _all_to_all(library, nbytes, size, simulate))
    shares = collective == ALL_REDUCE
    # With in-switch reduction on several hosts, the choice depends on NCCL's search for channels, which is not known.
    if library.tuner is not None and (hosts == 1 or not library.tuner.in_switch):
        choices = [library.tuner.choose(shares, nbytes, hosts, per_host)]
    else:
        protocols = [SIMPLE, *(each.name for each in network.protocols)]
        choices = [(RING, protocol) for protocol in protocols]
        if shares:
            choices += [(TREE, protocol) for protocol in protocols]
            if network.near.reduce_bandwidth:
                choices.append((NVLS, SIMPLE))
    return min(_time(library, collective, choice, nbytes, size, simulate) for choice in choices)


def _time(
    library: Library, collective: str, choice: tuple[str, str], nbytes: int, size: int, simulate: Simulate
) -> float:
    algorithm, protocol = choice
    per_host = min(size, library.network.ranks_per_host)
    channels = library.network.nics.count if size > per_host else 1
    segments = _tree_segments(nbytes, channels, size, per_host, protocol) if algorithm == TREE else 1
    parts = 2 * segments if algorithm == TREE else size  # of the vector of a channel
    network = library.variant(protocol, nbytes // channels // parts)
    if algorithm == NVLS:
        network_s = network.endpoint.call_overhead_s + in_switch_s(network, nbytes, size)
    elif algorithm == RING:
        network_s = _simulated(network, ring_of(collective, size), nbytes, channels, 1, simulate)
    else:
        network_s = _simulated(network, tree_of(size, per_host), nbytes, channels, segments, simulate)
    part = THREADS * THREAD_BYTES.get(protocol, 8) * (size if protocol == LL and algorithm == RING else 1)
    channels = min(library.most_channels, max(1, nbytes // part))
    return max(network_s, library.host_call_s + (channels - 1) * library.host_channel_s)


def in_switch_s(network: Network, nbytes: int, size: int) -> float:
    """Return the time of an all-reduce that the near switches perform.

    A rank sends its vector to the switch, which adds; then it sends the sum of its part, which the switch multicasts.
    Between the two, the parts of each NIC go up and down a tree of hosts, at the same time as the rest.
    """
    near, nics, hosts = network.near, network.nics, network.hosts_of(size)
    assert near.reduce_bandwidth is not None
    near_s = nbytes * (1 + 1 / min(size, network.ranks_per_host)) / near.reduce_bandwidth
    times = min(hosts - 1, 2)  # that a host sends the vector: in two trees, on average up once and down once
    far_s = times * nbytes / nics.count / nics.bandwidth
    return near.reduce_latency_s + 2 * int(math.log2(hosts)) * nics.latency_s + max(near_s, far_s)


def _tree_segments(nbytes: int, channels: int, size: int, per_host: int, protocol: str) -> int:
    """Return the number of passes through the trees of a channel.

    NCCL sends a vector in parts (src/enqueue.cc) and keeps up to 8 of them in flight between two ranks; the simulator
    keeps 4 passes in flight, so that a pass is two parts.
    """
    of_tree, depth = nbytes // channels // 2, per_host - 1 + int(math.log2(-(-size // per_host)))
    part = LL_PART if protocol == LL else MOST_PART
    for least, parts in TREE_PARTS:
        while of_tree // part < depth * parts and part > least:
            part //= 2
    return max(1, of_tree // part // 2)


def _simulated(
    network: Network, schedule: Schedule, nbytes: int, channels: int, segments: int, simulate: Simulate
) -> float:
    """Return the time of a call whose vector is divided between channels that share the near links."""
    alone = replace(
        network,
        near=replace(network.near, bandwidth=network.near.bandwidth / channels),
        endpoint=replace(network.endpoint, ports=1, call_overhead_s=0.0),
    )
    found = simulate(schedule, nbytes // channels, alone, segments=segments, contention=False)
    return network.endpoint.call_overhead_s + float(found.time_s)


def _all_to_all(library: Library, nbytes: int, size: int, simulate: Simulate) -> float:
    """Return the time of an all-to-all of sends and receives.

    The latency is paid once, because a rank does not wait for a message before it sends the next one.
    """
    network = library.variant(SIMPLE, nbytes // size)
    protocols = [protocol.name for protocol in network.protocols or library.network.protocols]
    short = nbytes // size <= MOST_LL_MESSAGE and LL in protocols
    first = library.variant(LL, 0) if short else network
    latency_s = first.nics.latency_s if size > network.ranks_per_host else first.near.latency_s
    exchange_s = (
        _buffered_s(network, nbytes, size) if library.buffered else _exchange_s(network, nbytes, size, simulate)
    )
    return network.endpoint.call_overhead_s + latency_s + exchange_s


def _buffered_s(network: Network, nbytes: int, size: int) -> float:
    """Return the time of the bytes where no two ranks share a connection and no rank waits for another."""
    per_host = network.ranks_per_host
    own = replace(network, nics=replace(network.nics, count=per_host), fabric=Switch())
    return nbytes / size * _busiest_link(own, size)


def _exchange_s(network: Network, nbytes: int, size: int, simulate: Simulate) -> float:
    """Return the time of the bytes where a rank serves one peer after the other; ranks share NICs and the fabric."""
    without_latency = replace(
        network,
        near=replace(network.near, latency_s=0.0),
        nics=replace(network.nics, latency_s=0.0),
        endpoint=replace(network.endpoint, ports=1, call_overhead_s=0.0),
    )
    return float(simulate(pairwise(size), nbytes, without_latency, segments=1, contention=True).time_s)


def _busiest_link(network: Network, size: int) -> float:
    """Return the time per byte of a message that the busiest link needs where all ranks send to all others."""
    src, dst = np.divmod(np.arange(size * size), size)
    routes = network.routes(size, src, dst)
    messages = np.bincount(routes[routes >= 0], minlength=len(network.links(size)))
    return float((messages / network.links(size).bandwidth).max())


@cache
def pairwise(size: int) -> Schedule:
    """Return the pairwise all-to-all."""
    return find(f"{ALL_TO_ALL}/pairwise").schedule(size)


@cache
def ring_of(collective: str, size: int) -> Schedule:
    """Return the ring of a collective."""
    return find(f"{collective}/ring").schedule(size)


@cache
def tree_of(size: int, per_host: int) -> Schedule:
    """Return the trees of NCCL."""
    return chains_and_trees.schedule(size, per_host=per_host)
