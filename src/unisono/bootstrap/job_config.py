"""The configuration that all ranks of a job share. It needs no engine: predictions read it too."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from unisono.compiler.geometry import DEPTH as DEPTH
from unisono.compiler.geometry import STAGING_BYTES as STAGING_BYTES
from unisono.costs.rates import rates_for

TRANSFER_BYTES = 32 * 1024
MEASURE = -1.0  # a link rate

# The measured table of algorithms, in the form in which it is stored (comm/tables.py):
# {"all_reduce": {"4": [[0, "naive"], [16384, "direct"]]}}
Table = dict[str, dict[str, list[list[Any]]]]
# The data by which a job chooses its algorithms: the "table", and the "rates" of the network, or "by_ranks", those
# for several numbers of ranks (comm/machine.py); "network" is that of ``connect(network=)``. Each may be absent.
Tuning = dict[str, Any]


@dataclass
class JobConfig:
    """The configuration of a job, which rank 0 determines."""

    staging_bytes: int
    oversubscribed: bool  # more ranks than cores
    spare_cores: bool = False  # two cores for each rank
    table: Table = field(default_factory=dict)
    token: str = ""  # different for every rendezvous
    met_ns: int = 0  # the time of the rendezvous
    link_rate: float = 0.0  # bytes per second of the links between hosts; 0: not known, MEASURE: to be measured
    rates: dict[str, float] = field(default_factory=dict)  # of the network, where they are not the default
    network: dict[str, Any] = field(default_factory=dict)  # costs/network_model.py; empty: this machine


def own_resources() -> dict[str, list[int]]:
    """Return the resources of this rank, from which the configuration of the job is determined."""
    return {"cores": sorted(os.sched_getaffinity(0))}


def job_config(
    resources: Sequence[Sequence[dict[str, Any]]], staging_bytes: int, tuning: Tuning, link_rate: float = 0.0
) -> dict[str, Any]:
    """Return the configuration of a job, given the resources of its ranks, by host.

    Ranks choose an algorithm by the configuration, so it is the same on all hosts: the one with the fewest cores for
    each rank counts.
    """
    cores = [(len({core for rank in ranks for core in rank["cores"]}), len(ranks)) for ranks in resources]
    oversubscribed = any(count < ranks for count, ranks in cores)
    spare_cores = all(2 * ranks <= count for count, ranks in cores)
    token, met_ns = secrets.token_hex(8), time.monotonic_ns()
    table, rates = tuning.get("table", {}), rates_for(tuning, max(ranks for _, ranks in cores))
    network = tuning.get("network", {})
    if oversubscribed and not network:  # which states the costs of its ranks
        rates["ranks_per_core"] = max(ranks / count for count, ranks in cores)
    return asdict(
        JobConfig(staging_bytes, oversubscribed, spare_cores, table, token, met_ns, link_rate, rates, network)
    )
