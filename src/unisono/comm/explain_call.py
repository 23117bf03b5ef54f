"""Explains a call without starting ranks: the algorithm that ``connect()`` on this machine would select."""

from __future__ import annotations

import os

from unisono import collectives
from unisono.algorithms.declaration import Algorithm
from unisono.algorithms.user_files import resolve
from unisono.bootstrap.job_resources import Table
from unisono.collectives import Collective
from unisono.comm.selection import Explanation, explain, load_table
from unisono.comm.topology import host_options
from unisono.compiler import Hosts
from unisono.message import Template
from unisono.verifier import proof_of

REQUESTED = Template("comm.requested", "the call requests it: algorithm={name!r}", "调用时指定了 algorithm={name!r}")


def explain_call(
    collective: str | Collective,
    nbytes: int,
    *,
    size: int,
    algorithm: str | None = None,
    table: Table | None = None,
    cores: int | None = None,
    hosts: Hosts | None = None,
) -> Explanation:
    """Return the algorithm of a call on this machine, the reason, and the next best algorithm.

    ``collective`` is a name such as "all_reduce"; ``nbytes`` is the size of the vector and ``size`` the number of
    ranks. ``algorithm`` is the name that the call passes, if it passes one. ``table`` replaces the one that ``unisono
    tune`` has measured (``{}`` stands for the built-in rules), and ``cores`` the number of cores that this process
    may use. ``hosts`` lists the ranks of each host; by default there is one host. ``Communicator.explain`` answers
    the same question for a communicator.
    """
    chosen = collectives.find(collective) if isinstance(collective, str) else collective
    table = load_table() if table is None else table
    cores = len(os.sched_getaffinity(0)) if cores is None else cores
    explanation = explain(chosen, size, nbytes, table, oversubscribed=size > cores, hosts=hosts)
    if algorithm is None:
        return explanation
    requested = resolve(algorithm, chosen)
    options = host_options(requested, hosts) if isinstance(requested, Algorithm) else {}
    proof_of(requested.schedule(size, **options))
    others = explanation.algorithm if explanation.algorithm != requested.name else explanation.next_best
    return Explanation(
        chosen.name, size, nbytes, requested.name, REQUESTED(name=algorithm), others, explanation.topology, options
    )
