"""Explains a call without starting ranks: the algorithm that ``connect()`` on this machine would select."""

from __future__ import annotations

import os

from unisono import collectives
from unisono.algorithms.declaration import Algorithm
from unisono.algorithms.user_files import resolve
from unisono.bootstrap.job_resources import Table
from unisono.codecs import AutoCodec
from unisono.collectives import Collective
from unisono.comm.codec_agreement import auto_codec_of
from unisono.comm.codec_choice import choose_codec
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
    codec: str | AutoCodec | None = None,
    link_rate: float | None = None,
) -> Explanation:
    """Return the algorithm of a call on this machine, the reason, and the next best algorithm.

    ``collective`` is a name such as "all_reduce"; ``nbytes`` is the size of the vector and ``size`` the number of
    ranks. ``algorithm`` is the name that the call passes, if it passes one. ``table`` replaces the one that ``unisono
    tune`` has measured (``{}`` stands for the built-in rules), and ``cores`` the number of cores that this process
    may use. ``hosts`` lists the ranks of each host; by default there is one host. ``codec`` is a codec
    that the call allows, such as "auto:bf16" (default: none), and ``link_rate`` the rate of the links between hosts
    in bytes per second (default: not known). ``Communicator.explain`` answers the same question for a communicator.
    """
    chosen = collectives.find(collective) if isinstance(collective, str) else collective
    table = load_table() if table is None else table
    cores = len(os.sched_getaffinity(0)) if cores is None else cores
    auto = auto_codec_of(chosen, codec)
    choice = None if auto is None else choose_codec(auto.codec, chosen, size, nbytes, hosts, link_rate)
    explanation = explain(chosen, size, nbytes, table, oversubscribed=size > cores, hosts=hosts, codec=choice)
    if algorithm is None:
        return explanation
    requested = resolve(algorithm, chosen)
    options = host_options(requested, hosts) if isinstance(requested, Algorithm) else {}
    proof_of(requested.schedule(size, **options))
    others = explanation.algorithm if explanation.algorithm != requested.name else explanation.next_best
    return Explanation(
        chosen.name, size, nbytes, requested.name, REQUESTED(name=algorithm), others, explanation.topology, options,
        explanation.codec, explanation.codec_reason,
    )  # fmt: skip
