"""The options with which algorithms use the hosts of a communicator, or of a network, as their nodes."""

from __future__ import annotations

from itertools import chain
from typing import Any

from unisono.algorithms import BUILT_IN
from unisono.algorithms.declaration import Algorithm
from unisono.algorithms.nodes import Node
from unisono.networks import Network

Hosts = tuple[tuple[int, ...], ...]  # the ranks of each host


def node_option(hosts: Hosts) -> Node:
    """Return the option ``node`` of hierarchical algorithms for these hosts, in its shortest form."""
    counts = tuple(map(len, hosts))
    if tuple(chain.from_iterable(hosts)) != tuple(range(sum(counts))):
        return hosts
    return counts[0] if len(set(counts)) == 1 else counts


def host_options(algorithm: Algorithm, hosts: Hosts | None) -> dict[str, Any]:
    """Return the options with which a built-in algorithm uses the hosts as its nodes."""
    return {"node": node_option(hosts)} if hosts is not None and uses_hosts(algorithm, hosts) else {}


def uses_hosts(algorithm: Algorithm, hosts: Hosts) -> bool:
    """Return whether an algorithm uses the hosts as its nodes: a built-in one does if it has nodes."""
    return len(hosts) > 1 and "node" in algorithm.options and algorithm in BUILT_IN


def network_options(algorithm: Algorithm, network: Network, size: int) -> dict[str, Any]:
    """Return the options with which a built-in algorithm uses the hosts of a network as its nodes.

    UsageError is raised if the network has fewer ranks than ``size``.
    """
    hosts = network.host_ranks(size)
    return host_options(algorithm, hosts if network.ranks_per_host > 1 else None)
