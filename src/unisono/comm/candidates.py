"""The algorithms among which the one of a call is chosen, with the options that use the hosts as nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from unisono.algorithms.catalogue import algorithms_serving, find
from unisono.algorithms.declaration import Algorithm
from unisono.algorithms.host_options import host_options, node_option, uses_hosts
from unisono.collectives import Collective
from unisono.compiler import Hosts
from unisono.schedule import Schedule

NO_OPTIONS: Mapping[str, Any] = {}
# With many hosts of different sizes the cut that suits all of them has very many chunks, which are then too short.
MOST_CHUNKS = 1024

# Between hosts, all ranks send to all others at once: measured to be up to twice as slow as a ring, which sends the
# same bytes, because TCP loses packets where many flows meet.
ONE_HOST_ONLY = ("direct",)

# Between several hosts with several ranks each: one algorithm inside a host, another between the hosts. Few steps or
# few bytes between the hosts; inside a host, ranks reach each other directly.
BETWEEN_HOSTS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "all_reduce": (
        ("leaders", ("recursive_doubling", "ring", "rabenseifner")),
        ("hierarchical", ("ring", "rabenseifner", "recursive_doubling")),
    ),
    "all_gather": (("hierarchical", ("ring", "bruck")),),
    "reduce_scatter": (("hierarchical", ("ring", "pat")),),
    "broadcast": (("hierarchical", ("tree", "chain")),),
    "reduce": (("hierarchical", ("tree", "chain")),),
}


class Variant(NamedTuple):
    """An algorithm with options; ``own`` are those that do not follow from the hosts."""

    algorithm: Algorithm
    options: Mapping[str, Any] = NO_OPTIONS
    own: Mapping[str, Any] = NO_OPTIONS

    @property
    def name(self) -> str:
        """The name of the algorithm."""
        return self.algorithm.name

    @property
    def key(self) -> str:
        """The algorithm and its own options, as files of cost terms name them."""
        return with_options(self.name, self.own)

    def schedule(self, size: int, root: int | None = None) -> Schedule:
        """Return the schedule for this number of ranks."""
        return self.algorithm.schedule(size, root, **self.options)

    def is_practical(self, size: int) -> bool:
        """Return whether the options do not cut the vector into very many chunks."""
        if not self.options or isinstance(self.options.get("node"), int):
            return True  # nodes of one size need no more chunks than there are ranks
        return self.algorithm.chunk_count(size, **self.options) <= max(size, MOST_CHUNKS)


def variant_of(collective: Collective, name: str, own: Mapping[str, Any], hosts: Hosts | None) -> Variant:
    """Return an algorithm with options; hierarchical ones use the hosts as their nodes."""
    algorithm = find(name, collective)
    return Variant(algorithm, {**host_options(algorithm, hosts), **own}, own)


def candidates_for(
    collective: Collective, size: int, hosts: Hosts | None, any_transport: bool = False
) -> list[Variant]:
    """Return the algorithms for ``size`` ranks on these hosts, the simplest ones first; None stands for one host.

    ``any_transport``: the network between hosts may be another one than TCP.
    """
    found = algorithms_serving(collective, size)
    if hosts is None or len(hosts) == 1:
        return [Variant(each) for each in found]
    if not any_transport:
        found = [each for each in found if each.name not in ONE_HOST_ONLY]
    if set(map(len, hosts)) == {1}:  # with one rank in each node, there is nothing to do inside them
        return [Variant(each) for each in found if "node" not in each.options]
    nodes = {"node": node_option(hosts)}
    if not isinstance(nodes["node"], int):
        # On hosts of different sizes, or with ranks in another order, others send more than necessary between hosts.
        found = [each for each in found if "node" in each.options] or found
    variants = [Variant(each, nodes if uses_hosts(each, hosts) else NO_OPTIONS) for each in found]
    for name, outer in BETWEEN_HOSTS.get(collective.name, ()) if found else ():
        algorithm = find(name, collective)
        explicit = ({"inner": "naive", "outer": each} for each in outer)
        owns = [own for own in explicit if not own.items() <= algorithm.options.items()]
        variants += [Variant(algorithm, {**nodes, **own}, own) for own in owns]
    return variants


def with_options(name: str, options: Mapping[str, Any]) -> str:
    """Return the name of an algorithm with its options, as schedules write it."""
    given = ", ".join(f"{option}={value}" for option, value in options.items())
    return f"{name}({given})" if given else name
