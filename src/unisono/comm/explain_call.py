"""Explains a call without starting ranks: the algorithm that ``connect()`` on this machine would select."""

from __future__ import annotations

from functools import lru_cache
from os import PathLike
from typing import TYPE_CHECKING

from unisono import collectives
from unisono.algorithms.declaration import Algorithm
from unisono.algorithms.host_options import host_options
from unisono.algorithms.user_files import resolve
from unisono.bootstrap.job_config import Table
from unisono.codecs import AutoCodec
from unisono.collectives import Collective
from unisono.comm.candidates import Variant
from unisono.comm.codec_agreement import auto_codec_of
from unisono.comm.codec_choice import choose_codec
from unisono.comm.explanation import Explanation, explain
from unisono.comm.machine import load_rates, usable_cores, with_link_rate
from unisono.comm.network_rates import load_network, network_hosts, rates_of_network
from unisono.comm.ranking import Ranking
from unisono.comm.tables import load_table
from unisono.compiler import Hosts
from unisono.costs.network_model import NetworkModel
from unisono.costs.rates import Rates
from unisono.message import Template
from unisono.verifier import proof_of

if TYPE_CHECKING:
    from unisono.networks import Network

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
    network: str | PathLike[str] | Network | None = None,
) -> Explanation:
    """Return the algorithm of a call on this machine, the reason, and the next best algorithm.

    ``collective`` is a name such as "all_reduce"; ``nbytes`` is the size of the vector and ``size`` the number of
    ranks. ``algorithm`` is the name that the call passes, if it passes one. ``table`` replaces the one that ``unisono
    tune`` has measured (``{}`` stands for none: the choice is predicted), and ``cores`` the number of cores of a host
    that this process may use. ``hosts`` lists the ranks of each host; by default there is one host. ``codec`` is a
    codec that the call allows, such as "auto:bf16" (default: none), and ``link_rate`` the rate of the links between
    hosts in bytes per second (default: not known). ``network`` is a network that replaces this machine: a preset such
    as "dgx-h100", the path of a TOML file, or a record; then by default no table is used, every rank has a core, and
    the network determines the hosts. ``Communicator.explain`` answers the same question for a communicator.
    """
    chosen = collectives.find(collective) if isinstance(collective, str) else collective
    ranking = None
    if network is None:
        most = size if hosts is None else max(map(len, hosts))
        rates: Rates | NetworkModel = load_rates(most)
        table = load_table() if table is None else table
    else:
        table = {} if table is None else table
        hosts = network_hosts(network, size) if hosts is None else hosts
        rates = rates_of_network(network, hosts, link_rate)
        cores = size if cores is None else cores
        ranking = _simulated(chosen, size, hosts, network)
    return explain_with(chosen, nbytes, size, rates, table, algorithm, cores, hosts, codec, link_rate, ranking)


def _simulated(
    collective: Collective, size: int, hosts: Hosts, network: str | PathLike[str] | Network
) -> Ranking | None:
    """Return the ranking by simulation; None for many ranks, and for a placement that the network does not have."""
    from unisono.comm import simulated_ranking

    if size > simulated_ranking.MOST_RANKS or hosts != network_hosts(network, size):
        return None
    return _simulated_once(collective, size, hosts, load_network(network))


@lru_cache(maxsize=4)
def _simulated_once(collective: Collective, size: int, hosts: Hosts, network: Network) -> Ranking:
    from unisono.comm.simulated_ranking import SimulatedRanking

    return SimulatedRanking(collective, size, None if len(hosts) == 1 else hosts, network)


def explain_with(
    collective: Collective, nbytes: int, size: int, rates: Rates | NetworkModel, table: Table,
    algorithm: str | None = None, cores: int | None = None, hosts: Hosts | None = None,
    codec: str | AutoCodec | None = None, link_rate: float | None = None, ranking: Ranking | None = None,
) -> Explanation:  # fmt: skip
    """Return the algorithm of a call for given rates and a given table; ``ranking`` replaces that by cost terms."""
    cores = usable_cores() if cores is None else cores
    most = size if hosts is None else max(map(len, hosts))
    if isinstance(rates, Rates):
        rates = with_link_rate(rates._replace(ranks_per_core=max(1.0, most / cores)), link_rate)
    auto = auto_codec_of(collective, codec)
    choice = None if auto is None else choose_codec(auto.codec, collective, size, nbytes, hosts, link_rate, rates)
    if hosts is not None and len(hosts) == 1:
        hosts = None  # as a communicator has it
    if algorithm is None:
        return explain(collective, size, nbytes, table, rates, hosts, choice, ranking=ranking)
    requested = resolve(algorithm, collective)
    options = host_options(requested, hosts) if isinstance(requested, Algorithm) else {}
    proof_of(requested.schedule(size, **options))
    own = Variant(requested, options) if isinstance(requested, Algorithm) else requested
    explanation = explain(collective, size, nbytes, table, rates, hosts, choice, own=own, ranking=ranking)
    return explanation._replace(algorithm=requested.name, reason=REQUESTED(name=algorithm), options=options)
