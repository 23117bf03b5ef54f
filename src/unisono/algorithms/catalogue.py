"""The list of built-in algorithms, and the search for one by name."""

from __future__ import annotations

from difflib import get_close_matches

from unisono import collectives
from unisono.algorithms import messages
from unisono.algorithms.bundles import hierarchical_gather, hierarchical_scatter
from unisono.algorithms.butterfly import butterfly
from unisono.algorithms.chain import chain_broadcast, chain_reduce
from unisono.algorithms.columns import hierarchical_all_gather, hierarchical_reduce_scatter
from unisono.algorithms.declaration import Algorithm
from unisono.algorithms.dissemination import (
    bruck_all_gather,
    bruck_all_to_all,
    dissemination_barrier,
    pat_all_gather,
    pat_reduce_scatter,
)
from unisono.algorithms.double_tree import double_tree
from unisono.algorithms.doubling import (
    rabenseifner,
    recursive_doubling,
    recursive_doubling_all_gather,
    recursive_halving_reduce_scatter,
)
from unisono.algorithms.exchange import hierarchical_all_to_all, pairwise_all_to_all
from unisono.algorithms.hierarchical import hierarchical, torus
from unisono.algorithms.leaders import hierarchical_barrier, hierarchical_broadcast, hierarchical_reduce, leaders
from unisono.algorithms.naive import (
    direct,
    naive,
    naive_all_gather,
    naive_all_to_all,
    naive_broadcast,
    naive_gather,
    naive_reduce,
    naive_reduce_scatter,
    naive_scatter,
)
from unisono.algorithms.neighbour_exchange import neighbour_exchange_all_gather
from unisono.algorithms.ring import (
    bidirectional_ring,
    bidirectional_ring_all_gather,
    bidirectional_ring_reduce_scatter,
    ring,
    ring_all_gather,
    ring_reduce_scatter,
)
from unisono.algorithms.scatter_and_gather import reduce_scatter_gather_reduce, scatter_all_gather_broadcast
from unisono.algorithms.swing import swing
from unisono.algorithms.tree import tree, tree_barrier, tree_broadcast, tree_gather, tree_reduce, tree_scatter
from unisono.collectives import Collective, all_reduce
from unisono.errors import UsageError
from unisono.message import join, listed

BUILT_IN: tuple[Algorithm, ...] = (
    naive_broadcast, tree_broadcast, chain_broadcast, scatter_all_gather_broadcast, hierarchical_broadcast,
    naive_scatter, tree_scatter, hierarchical_scatter,
    naive_gather, tree_gather, hierarchical_gather,
    naive_reduce, tree_reduce, chain_reduce, reduce_scatter_gather_reduce, hierarchical_reduce,
    naive_all_gather, ring_all_gather, bidirectional_ring_all_gather, recursive_doubling_all_gather,
    bruck_all_gather, pat_all_gather, neighbour_exchange_all_gather, hierarchical_all_gather,
    naive_reduce_scatter, ring_reduce_scatter, bidirectional_ring_reduce_scatter,
    recursive_halving_reduce_scatter, pat_reduce_scatter, hierarchical_reduce_scatter,
    naive, direct, ring, bidirectional_ring, recursive_doubling, butterfly, tree, double_tree, rabenseifner,
    hierarchical, leaders, torus, swing,
    naive_all_to_all, pairwise_all_to_all, bruck_all_to_all, hierarchical_all_to_all,
    dissemination_barrier, tree_barrier, hierarchical_barrier,
)  # fmt: skip


def algorithms_of(collective: Collective) -> list[Algorithm]:
    """Return the built-in algorithms of a collective."""
    return [algorithm for algorithm in BUILT_IN if algorithm.collective is collective]


def algorithms_serving(collective: Collective, size: int) -> list[Algorithm]:
    """Return the built-in algorithms of a collective that can serve this number of ranks."""
    return [algorithm for algorithm in algorithms_of(collective) if algorithm.can_serve(size)]


def find(name: str, collective: Collective | None = None) -> Algorithm:
    """Return the algorithm of a name.

    ``all_gather/ring`` is a full name. A bare name means an algorithm of ``collective``; without one, that of
    all_reduce if there is one, else the only one of that name.
    """
    first, slash, second = name.partition("/")
    if slash:
        name, collective = second, collectives.find(first)
    # the name of the function is accepted too: ring_all_gather
    matches = [
        algorithm
        for algorithm in (BUILT_IN if collective is None else algorithms_of(collective))
        if name in (algorithm.name, algorithm.function.__name__)
    ]
    preferred = [algorithm for algorithm in matches if algorithm.collective is all_reduce]
    if len(matches) == 1 or preferred:
        return (preferred or matches)[0]
    if matches:
        raise UsageError(messages.SEVERAL_COLLECTIVES(name=repr(name), names=listed(map(str, matches))))
    if collective is None and name in {a.collective.name for a in BUILT_IN}:
        algorithms = listed(str(a) for a in algorithms_of(collectives.find(name)))
        raise UsageError(messages.IS_A_COLLECTIVE(name=repr(name), names=algorithms))
    # a bare name prefers all_reduce, in suggestions too
    by_name = {a.name: str(a) for a in sorted(BUILT_IN, key=lambda a: a.collective is all_reduce)}
    known = (
        {a.name: a.name for a in algorithms_of(collective)}
        if collective
        else {**{str(a): str(a) for a in BUILT_IN}, **by_name}
    )
    near = get_close_matches(name, known, n=1)
    what = messages.UNKNOWN_NAME_OF if collective else messages.UNKNOWN_NAME
    suggestion = [messages.DID_YOU_MEAN(name=repr(known[near[0]]))] if near else []
    others = messages.KNOWN(names=listed(known)) if collective else messages.SEE_LIST()
    parameters = {"collective": collective} if collective else {}
    raise UsageError(join([what(name=repr(name), **parameters), *suggestion, others]))
