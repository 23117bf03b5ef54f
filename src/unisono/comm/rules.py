"""The built-in rules: the algorithm of a call where nothing was measured, by collective, hosts and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from unisono.algorithms import find
from unisono.algorithms.declaration import Algorithm
from unisono.collectives import Collective
from unisono.comm.topology import host_options
from unisono.compiler import Hosts
from unisono.schedule import Schedule

NO_OPTIONS: Mapping[str, Any] = {}
KIB = 1024
# With many hosts of different sizes the cut that suits all of them has very many chunks, which are then too short.
MOST_CHUNKS = 1024


class Rule(NamedTuple):
    """The algorithm from a number of bytes on, and its options."""

    from_bytes: int
    algorithm: str
    options: Mapping[str, Any] = NO_OPTIONS


class Variant(NamedTuple):
    """An algorithm with options."""

    algorithm: Algorithm
    options: Mapping[str, Any] = NO_OPTIONS

    @property
    def name(self) -> str:
        """The name of the algorithm."""
        return self.algorithm.name

    def schedule(self, size: int, root: int | None = None) -> Schedule:
        """Return the schedule for this number of ranks."""
        return self.algorithm.schedule(size, root, **self.options)

    def is_practical(self, size: int) -> bool:
        """Return whether the options do not cut the vector into very many chunks."""
        return not self.options or self.algorithm.chunk_count(size, **self.options) <= max(size, MOST_CHUNKS)


# On one host. Short vectors need few steps, long ones few bytes; and where every rank reaches every other, the direct
# algorithms are hard to beat.
ONE_HOST: dict[str, tuple[Rule, ...]] = {
    "all_reduce": (Rule(0, "recursive_doubling"), Rule(8 * KIB, "direct")),
    "all_gather": (Rule(0, "naive"),),
    "reduce_scatter": (Rule(0, "naive"),),
    "broadcast": (Rule(0, "naive"),),
    "reduce": (Rule(0, "naive"),),
    "gather": (Rule(0, "naive"),),
    "scatter": (Rule(0, "naive"),),
    "all_to_all": (Rule(0, "naive"),),
    "barrier": (Rule(0, "dissemination"),),
}
# Where ranks share cores, every step costs a context switch on each core: one step is best while it is cheap.
OVERSUBSCRIBED: dict[str, tuple[Rule, ...]] = {**ONE_HOST, "all_reduce": (Rule(0, "naive"), Rule(4 * KIB, "direct"))}
# One rank on each host: few steps for short vectors, few bytes for long ones, and never many senders to one link at
# once, which was up to twice as slow.
ONE_RANK_PER_HOST: dict[str, tuple[Rule, ...]] = {
    "all_reduce": (Rule(0, "recursive_doubling"), Rule(32 * KIB, "ring")),
    "all_gather": (Rule(0, "bruck"), Rule(32 * KIB, "ring")),
    "reduce_scatter": (Rule(0, "pat"), Rule(32 * KIB, "ring")),
    "broadcast": (Rule(0, "tree"), Rule(512 * KIB, "chain")),
    "reduce": (Rule(0, "tree"), Rule(512 * KIB, "chain")),
    "gather": (Rule(0, "naive"),),
    "scatter": (Rule(0, "naive"),),
    "all_to_all": (Rule(0, "naive"), Rule(32 * KIB, "pairwise")),
    "barrier": (Rule(0, "dissemination"),),
}
# Several ranks on a host: the link of the host is the bottleneck, so data crosses it as seldom as possible.
SEVERAL_HOSTS: dict[str, tuple[Rule, ...]] = {
    # Measured on 4x4, 4x2 and 2x8 (docs/several_machines.md): up to 64 KiB, one rank of each host is twice as fast.
    "all_reduce": (
        Rule(0, "leaders", {"outer": "recursive_doubling"}),
        Rule(128 * KIB, "hierarchical", {"inner": "naive", "outer": "ring"}),
    ),
    "all_gather": (
        Rule(0, "hierarchical", {"inner": "naive", "outer": "bruck"}),
        Rule(32 * KIB, "hierarchical", {"inner": "naive", "outer": "ring"}),
    ),
    "reduce_scatter": (
        Rule(0, "hierarchical", {"inner": "naive", "outer": "pat"}),
        Rule(32 * KIB, "hierarchical", {"inner": "naive", "outer": "ring"}),
    ),
    "broadcast": (
        Rule(0, "hierarchical", {"inner": "naive", "outer": "tree"}),
        Rule(512 * KIB, "hierarchical", {"inner": "naive", "outer": "chain"}),
    ),
    "reduce": (
        Rule(0, "hierarchical", {"inner": "naive", "outer": "tree"}),
        Rule(512 * KIB, "hierarchical", {"inner": "naive", "outer": "chain"}),
    ),
    "gather": (Rule(0, "hierarchical"),),
    "scatter": (Rule(0, "hierarchical"),),
    "all_to_all": (Rule(0, "hierarchical"), Rule(32 * KIB, "pairwise")),
    "barrier": (Rule(0, "hierarchical"),),
}
# Where the rule above cannot be used: with many hosts of different sizes, or with a codec.
FALLBACK: dict[str, tuple[Rule, ...]] = {
    "all_reduce": (
        Rule(0, "leaders", {"outer": "recursive_doubling"}),
        Rule(32 * KIB, "leaders", {"outer": "ring"}),
    ),
    "all_to_all": (Rule(0, "pairwise"),),
}


def rules_for(collective: Collective, hosts: Hosts | None, oversubscribed: bool) -> tuple[Rule, ...]:
    """Return the built-in rules of a collective on these hosts; None stands for one host."""
    if hosts is None or len(hosts) == 1:
        return (OVERSUBSCRIBED if oversubscribed else ONE_HOST)[collective.name]
    if all(len(ranks) == 1 for ranks in hosts):
        return ONE_RANK_PER_HOST[collective.name]
    return SEVERAL_HOSTS[collective.name]


def variant_of(collective: Collective, rule: Rule, hosts: Hosts | None) -> Variant:
    """Return the algorithm of a rule; hierarchical ones use the hosts as their nodes."""
    algorithm = find(rule.algorithm, collective)
    return Variant(algorithm, {**host_options(algorithm, hosts), **rule.options})


def with_options(name: str, options: Mapping[str, Any]) -> str:
    """Return the name of an algorithm with its options, as schedules write it."""
    given = ", ".join(f"{option}={value}" for option, value in options.items())
    return f"{name}({given})" if given else name
