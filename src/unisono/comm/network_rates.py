"""The rates and hosts of a network of the simulator, for the choice of algorithms."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from unisono.bootstrap.job_resources import Tuning
from unisono.comm.machine import load_tuning
from unisono.comm.tables import load_table
from unisono.compiler import Hosts
from unisono.costs.rates import Rates, rates_of

if TYPE_CHECKING:
    from unisono.networks import Network


def tuning_for(network: str | PathLike[str] | None) -> Callable[[], Tuning]:
    """Return the function that loads the table and the rates of a job; a network replaces this machine."""
    if network is None:
        return load_tuning
    rates = rates_of_network(network)  # also on the ranks whose network is not used: an error appears on all
    return lambda: {"table": load_table(), "rates": rates.as_data()}


def rates_of_network(network: str | PathLike[str] | Network) -> Rates:
    """Return the rates of a network: a preset, the path of a TOML file, or a record."""
    return rates_of(load_network(network))


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
