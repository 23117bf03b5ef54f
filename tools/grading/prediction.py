"""Predicts measured rows with the simulator."""

from __future__ import annotations

from functools import cache

from grading.mapping import PIECES, Implementation
from grading.measurements import Row
from unisono import collectives
from unisono.networks import Network
from unisono.simulator.actions import Programs
from unisono.simulator.costs import costs_of, cut
from unisono.simulator.events import run
from unisono.simulator.simulation import rank_by_rank, shares_links


@cache
def programs_of(implementation: Implementation, size: int, pieces: int, ranks_per_host: int) -> Programs:
    """Return the compiled programs of all ranks; those of a network with as many ranks per host."""
    algorithm = implementation.algorithm
    options = {"pieces": pieces} if implementation.at_once else {}
    schedule = algorithm.schedule(size, 0 if algorithm.collective.rooted else None, **options)
    return rank_by_rank(schedule, Network("any", ranks_per_host=ranks_per_host))


def predict(row: Row, implementation: Implementation, network: Network) -> float:
    """Return the predicted time of a row in seconds.

    This is ``unisono.simulate`` with channels of any depth, as MPI libraries have them, and with
    programs that are compiled once for all sizes; the copies that the library makes besides are added.
    """
    end = network.endpoint
    long = end.eager_bytes is not None and row.nbytes > end.eager_bytes
    pieces = PIECES if implementation.at_once and long else 1
    programs = programs_of(implementation, row.size, pieces, network.ranks_per_host)
    algorithm = implementation.algorithm
    collective = collectives.find(algorithm.collective.name)
    options = {"pieces": pieces} if implementation.at_once else {}
    chunks = algorithm.chunk_count(row.size, **options)
    working_set = float(row.nbytes) * (1 if collective.single_array else 2)
    sizes = cut(row.nbytes, chunks, row.nbytes / chunks, 1, 1, None, working_set)
    costs = costs_of(programs, network, sizes)
    bandwidth = network.links(row.size).bandwidth if shares_links(programs, costs, network) else None
    outcome = run(programs, costs, None, bandwidth, record=False)
    assert outcome is not None, row
    return float(outcome.unit_s.max()) + end.call_overhead_s + besides_s(implementation, row, network)


def besides_s(implementation: Implementation, row: Row, network: Network) -> float:
    """Return the time of what a library does besides its messages: copies, and temporary buffers."""
    end = network.endpoint
    beyond = end.beyond_cache if end.cache_bytes is not None and row.nbytes > end.cache_bytes else 1.0
    copying_s = implementation.copied * row.nbytes * end.copy_s_per_byte * beyond
    received = [implementation.received * row.nbytes, *implementation.blocks * [row.nbytes / row.size]]
    fresh = end.fresh_bytes([implementation.sent * row.nbytes], received)
    return copying_s + fresh * end.allocate_s_per_byte
