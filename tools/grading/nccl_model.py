"""Predicts the time of a call of NCCL: NCCL's choice of algorithm and protocol, timed by the simulator.

NCCL runs the same ring, or tree, on several *channels* at the same time, with an equal part of the vector each: the
simulator runs one of them. Bytes move when all ranks have started: where one process enqueues the calls of all GPUs,
one after the other, the latency of the network is hidden behind the time of the host, but the bytes are not.

Between hosts, a *proxy* thread of each GPU hands every message of every channel to the NIC, one after the other. A
step therefore takes the latency that NCCL's authors measured, and the cost of a message for each message of the step
(``Library.far_latency_s``). This is the part of the model that makes it hold for other numbers of hosts and channels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from grading.nccl_choice import ALGORITHMS, FAR_US, LL, NVLS, PROTOCOLS, RING, SIMPLE, TREE, Tuner
from grading.nccl_programs import chains_and_trees
from unisono.algorithms.catalogue import find
from unisono.networks import Network, Switch
from unisono.schedule import Schedule

ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
MOST_LL_MESSAGE = 16 << 10  # NCCL_P2P_LL_THRESHOLD; only inside a host, as network buffers of sends are for Simple
THREADS = 512  # of a channel
THREAD_BYTES = {LL: 8, SIMPLE: 64}  # a channel is used for each THREADS * THREAD_BYTES bytes; LL: times ranks
# The part of a vector that a tree sends at once is at most MOST_PART. It is halved, but not below the first number of
# an entry, while there are fewer parts than the depth of the tree times the second number.
MOST_PART, LL_PART = 512 << 10, 32 << 10
TREE_PARTS = ((128 << 10, 8), (64 << 10, 4), (32 << 10, 1))
SLICES = 2  # a ring with Simple sends a chunk in two messages (ALLREDUCE_CHUNKSTEPS / ALLREDUCE_SLICESTEPS)
TURNS = {LL: 1}  # of the proxy for a message: with flags in the data one, otherwise a second one for their arrival
OTHER_TURNS = 2
EAGER_BYTES = 16 << 10  # libfabric on Slingshot: longer messages use a rendezvous (FI_CXI_RDZV_THRESHOLD)
INLINE_BYTES = 192  # libfabric on Slingshot: the processor copies shorter messages out of the GPU (fi_inject)
LL_DATA = 0.5  # the part of the bytes of LL that is data
US = 1e-6
Simulate = Callable[..., Any]


@dataclass(frozen=True)
class Library:
    """NCCL on a machine. ``network`` has the protocols of NCCL; its own costs are those of Simple.

    The host needs ``host_call_s`` for a call, ``host_channel_s`` for each further channel that the call uses, and
    ``host_peer_s`` for each send and receive of an all-to-all, which NCCL does not have: nccl-tests makes it of them.
    A proxy needs ``message_s`` for a message between hosts, and ``ring_ll_s`` for one of a ring with LL. Messages
    of a ring that are longer than ``EAGER_BYTES`` cost ``rendezvous_s`` more, and those of an all-to-all of up to
    ``INLINE_BYTES`` ``inline_s``. A step between hosts has a latency of at least ``least_far_s``, and ``net_s`` in
    addition. A channel moves at most ``ll_rate`` bytes per second between hosts with LL. In an all-to-all, a GPU
    sends at most ``exchange_rate`` bytes per second to other hosts (None: what its NIC allows). ``tuner`` chooses the
    algorithm; without one, the best of ``algorithms`` is taken (as plugins that were tuned on the machine do).
    """

    name: str
    network: Network
    tuner: Tuner | None = None
    most_channels: int = 32
    host_call_s: float = 0.0
    host_channel_s: float = 0.0
    host_peer_s: float = 0.0
    message_s: float = 0.0
    ring_ll_s: float | None = None  # None: ``message_s``
    rendezvous_s: float = 0.0
    inline_s: float = 0.0
    net_s: float = 0.0
    least_far_s: float = 0.0
    ll_rate: float = math.inf
    exchange_rate: float | None = None
    algorithms: tuple[str, ...] = ALGORITHMS

    def variant(self, protocol: str) -> Network:
        """Return the network with the costs of a protocol."""
        names = [SIMPLE, *(each.name for each in self.network.protocols)]
        return self.network.variants()[names.index(protocol)]

    def channels(self, algorithm: str, protocol: str, nbytes: int, size: int) -> int:
        """Return the number of channels that a call uses."""
        part = THREADS * THREAD_BYTES.get(protocol, 8) * (size if protocol == LL and algorithm == RING else 1)
        return min(self.most_channels, max(1, nbytes // part))

    def far_latency_s(self, algorithm: str, protocol: str, channels: int, message_bytes: float) -> float:
        """Return the time of a step between hosts without that of the bytes.

        The channels of a NIC follow one another; those of a ring with LL all do.
        """
        base_s = max(FAR_US[RING][PROTOCOLS.index(protocol)] * US, self.least_far_s) + self.net_s
        if (algorithm, protocol) == (RING, LL):
            return base_s + channels * (self.message_s if self.ring_ll_s is None else self.ring_ll_s)
        turns = max(1.0, channels / self.network.nics.count) * TURNS.get(protocol, OTHER_TURNS)
        if algorithm == TREE or protocol != SIMPLE:
            return base_s + turns * self.message_s
        late_s = self.rendezvous_s if message_bytes / SLICES > EAGER_BYTES else 0.0
        return base_s + SLICES * turns * (self.message_s + late_s)


def predict(library: Library, collective: str, nbytes: int, size: int, simulate: Simulate) -> float:
    """Return the time of a call in seconds; ``nbytes`` is the whole vector, as in nccl-tests."""
    network = library.network
    per_host = min(size, network.ranks_per_host)
    hosts = network.hosts_of(size)
    if collective == ALL_TO_ALL:
        host_s = library.host_call_s + 2 * size * library.host_peer_s
        return max(host_s, _first_s(library, nbytes, size)) + _exchange_s(library, nbytes, size)
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
            choices = [choice for choice in choices if choice[0] in library.algorithms]
    return min(_time(library, collective, choice, nbytes, size, simulate) for choice in choices)


def _time(
    library: Library, collective: str, choice: tuple[str, str], nbytes: int, size: int, simulate: Simulate
) -> float:
    algorithm, protocol = choice
    call_s = library.variant(protocol).endpoint.call_overhead_s

    def network_s(nbytes: int) -> float:
        if algorithm == NVLS:
            return in_switch_s(library, nbytes, size)
        if algorithm == RING:
            return _ring_s(library, collective, protocol, nbytes, size, simulate)
        return _tree_s(library, protocol, nbytes, size, simulate)

    time_s = call_s + network_s(nbytes)
    if not library.host_call_s:
        return time_s
    channels = library.channels(algorithm, protocol, nbytes, size)
    host_s = library.host_call_s + (channels - 1) * library.host_channel_s
    return time_s + max(0.0, host_s - call_s - network_s(size))  # a vector of a byte for each rank: the latency


def in_switch_s(library: Library, nbytes: int, size: int) -> float:
    """Return the time of an all-reduce that the near switches perform.

    A rank sends its vector to the switch, which adds; then it sends the sum of its part, which the switch multicasts.
    Between the two, the parts of each NIC go up and down a tree of hosts, at the same time as the rest.
    """
    network, hosts = library.network, library.network.hosts_of(size)
    near, nics = network.near, network.nics
    assert near.reduce_bandwidth is not None
    near_s = nbytes * (1 + 1 / min(size, network.ranks_per_host)) / near.reduce_bandwidth
    times = min(hosts - 1, 2)  # that a host sends the vector: in two trees, on average up once and down once
    far_s = times * nbytes / nics.count / nics.bandwidth
    step_s = library.far_latency_s(TREE, SIMPLE, library.most_channels, 0)
    return near.reduce_latency_s + 2 * int(math.log2(hosts)) * step_s + max(near_s, far_s)


def _channel(
    library: Library, algorithm: str, protocol: str, channels: int, message_bytes: float, hosts: int
) -> tuple[Network, int]:
    """Return the network as one channel sees it, and the number of channels that share the vector.

    With Simple and LL128, the channels of a NIC together are one. With LL, a channel has a speed limit.
    """
    network = library.variant(protocol)
    ways, nics = network.nics.count, network.nics
    if hosts == 1:
        ways = 1
    elif protocol == LL:
        ways, total = channels, LL_DATA * library.network.nics.bandwidth * nics.count
        nics = replace(nics, bandwidth=min(library.ll_rate, total / channels))
    latency_s = library.far_latency_s(algorithm, protocol, channels, message_bytes)
    alone = replace(
        network,
        near=replace(network.near, bandwidth=network.near.bandwidth / ways),
        nics=replace(nics, latency_s=latency_s),
        endpoint=replace(network.endpoint, ports=1, call_overhead_s=0.0),
    )
    return alone, ways


def _ring_s(library: Library, collective: str, protocol: str, nbytes: int, size: int, simulate: Simulate) -> float:
    channels = library.channels(RING, protocol, nbytes, size)
    hosts = library.network.hosts_of(size)
    network, ways = _channel(library, RING, protocol, channels, nbytes / channels / size, hosts)
    found = simulate(ring_of(collective, size), nbytes // ways, network, segments=1, contention=False)
    return float(found.time_s)


def _tree_s(library: Library, protocol: str, nbytes: int, size: int, simulate: Simulate) -> float:
    """Return the time of a vector that goes through the trees in parts: the first one, and the pace of the others.

    The near link of a GPU carries a part up and down. The busiest NIC sends a part once on two hosts and, in the two
    trees together, twice on more.
    """
    channels = library.channels(TREE, protocol, nbytes, size)
    per_host, hosts = min(size, library.network.ranks_per_host), library.network.hosts_of(size)
    part = _tree_part(nbytes / channels, per_host - 1 + int(math.log2(hosts)), protocol)
    network, ways = _channel(library, TREE, protocol, channels, part, hosts)
    parts, together = nbytes / channels / part, channels / ways  # channels that the simulated one stands for
    first = simulate(tree_of(size, per_host), int(part * together), network, segments=1, contention=False)
    pace_s = 2 * part * together / network.near.bandwidth  # up and down
    if hosts > 1:
        message_s = library.message_s if protocol != LL else 0.0
        pace_s = max(pace_s, min(hosts - 1, 2) * together * (message_s + part / network.nics.bandwidth))
    return float(first.time_s) + (parts - 1) * pace_s


def _tree_part(of_channel: float, depth: int, protocol: str) -> float:
    """Return the bytes that a tree sends at once (src/enqueue.cc); each channel has one tree."""
    part = LL_PART if protocol == LL else MOST_PART
    for least, parts in TREE_PARTS:
        while of_channel // part < depth * parts and part > least:
            part //= 2
    return min(part, of_channel)


def _first_s(library: Library, nbytes: int, size: int) -> float:
    """Return the time of an all-to-all of sends and receives without that of the bytes.

    The latency is paid once, because a rank does not wait for a message before it sends the next one, but its proxy
    works on every message.
    """
    network = library.variant(SIMPLE)
    far_peers, call_s = size - min(size, network.ranks_per_host), network.endpoint.call_overhead_s
    if far_peers:
        message_s = library.message_s + (library.inline_s if nbytes // size <= INLINE_BYTES else 0.0)
        return call_s + FAR_US[RING][PROTOCOLS.index(SIMPLE)] * US + library.net_s + far_peers * message_s
    short = nbytes // size <= MOST_LL_MESSAGE and any(each.name == LL for each in library.network.protocols)
    return call_s + (library.variant(LL) if short else network).near.latency_s


def _exchange_s(library: Library, nbytes: int, size: int) -> float:
    """Return the time of the bytes: that of the busiest link, as all messages are under way at the same time."""
    network = library.variant(SIMPLE)
    if library.exchange_rate is not None:
        nics = replace(network.nics, count=network.ranks_per_host, bandwidth=library.exchange_rate)
        network = replace(network, nics=nics, fabric=Switch())
    src, dst = np.divmod(np.arange(size * size), size)
    routes = network.routes(size, src, dst)
    messages = np.bincount(routes[routes >= 0], minlength=len(network.links(size)))
    return nbytes / size * float((messages / network.links(size).bandwidth).max())


@cache
def ring_of(collective: str, size: int) -> Schedule:
    """Return the ring of a collective."""
    return find(f"{collective}/ring").schedule(size)


@cache
def tree_of(size: int, per_host: int) -> Schedule:
    """Return the trees of NCCL."""
    return chains_and_trees.schedule(size, per_host=per_host)
