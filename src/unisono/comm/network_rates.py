"""The rates and hosts of a network of the simulator, for the choice of algorithms."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from unisono.bootstrap.job_config import JobConfig, Tuning
from unisono.comm.machine import load_tuning, with_link_rate
from unisono.comm.tables import load_table
from unisono.compiler import Hosts
from unisono.costs.network_model import NetworkModel, model_from, model_of
from unisono.costs.rates import Rates, rates_from, rates_of

if TYPE_CHECKING:
    from unisono.networks import Network


def tuning_for(network: str | PathLike[str] | None) -> Callable[[], Tuning]:
    """Return the function that loads the table and the rates of a job; a network replaces this machine."""
    if network is None:
        return load_tuning
    found = load_network(network)  # also on the ranks whose network is not used: an error appears on all
    rates, model = rates_of(found).as_data(), model_of(found).as_data()
    return lambda: {"table": load_table(), "rates": rates, "network": model}


def agreed_rates(config: JobConfig, hosts: Hosts | None) -> Rates | NetworkModel:
    """Return the rates by which the ranks on these hosts choose; None stands for one host."""
    link_rate = config.link_rate or None
    if not config.network:
        return with_link_rate(rates_from(config.rates), link_rate)
    return _costs_on(hosts, rates_from(config.rates), model_from(config.network), link_rate)


def rates_of_network(
    network: str | PathLike[str] | Network, hosts: Hosts | None, link_rate: float | None = None
) -> Rates | NetworkModel:
    """Return the rates of a network on these hosts: a preset, the path of a TOML file, or a record."""
    found = load_network(network)
    return _costs_on(hosts, rates_of(found), model_of(found), link_rate)


def _costs_on(
    hosts: Hosts | None, rates: Rates, model: NetworkModel, link_rate: float | None
) -> Rates | NetworkModel:
    """Return the rates where all ranks share the memory of a host, or else the model, in which they have ports."""
    if (hosts is None or len(hosts) == 1) and model.shares_memory:
        return rates
    if hosts is None or link_rate is None or link_rate <= 0:
        return model
    return model.with_link_rate(link_rate, max(map(len, hosts)))


def network_hosts(network: str | PathLike[str] | Network, size: int) -> Hosts:
    """Return the hosts on which a network places ``size`` ranks; raise UsageError if it has too few."""
    found = load_network(network)
    count, each = found.hosts_of(size), found.ranks_per_host
    return tuple(tuple(range(host * each, min(size, (host + 1) * each))) for host in range(count))


def load_network(network: str | PathLike[str] | Network) -> Network:
    """Return the record of a network; raise UsageError if there is no such preset, or the file is wrong."""
    if isinstance(network, str | os.PathLike):
        return _loaded(network if isinstance(network, str) else Path(network))
    return network


@lru_cache(maxsize=16)
def _loaded(name: str | Path) -> Network:
    from unisono.networks import load

    return load(name)
