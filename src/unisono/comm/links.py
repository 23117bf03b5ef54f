"""Measures the links between the hosts of a communicator: the time of a round trip, and the rate in each direction.

One rank of each host takes part, and one pair of hosts at a time, so that no measurement disturbs another.
"""

from __future__ import annotations

import itertools
import time
from typing import NamedTuple

import numpy as np

from unisono.bootstrap.job_config import MEASURE, JobConfig
from unisono.comm import codec_messages as messages
from unisono.comm.communicator import Communicator
from unisono.errors import UsageError

EACH_S = 0.1  # for the round trips of a pair, and for its rate in each direction
# With many hosts each pair gets less time, so that the ranks that wait for the others do not reach their timeout.
SHORTEST_S, ALL_PAIRS_S = 0.005, 20.0
WARM_UP, FEWEST, MOST = 3, 5, 200  # round trips
FIRST_BYTES, CALL_BYTES, MOST_BYTES = 256 << 10, 4 << 20, 256 << 20


class LinkTimes(NamedTuple):
    """The link between two hosts, given as indices into ``Communicator.hosts``; ``first`` is the lower one."""

    first: int
    second: int
    round_trip_s: float  # of 8 bytes
    forth: float  # bytes per second from the first to the second
    back: float  # bytes per second from the second to the first

    @property
    def rate(self) -> float:
        """The bytes per second of the slower direction."""
        return min(self.forth, self.back)


def measure_links(comm: Communicator, each_s: float = EACH_S) -> list[LinkTimes]:
    """Measure the link of every pair of hosts; all ranks call this, and all get the same result.

    ``each_s`` is the time in seconds for the round trips and for each direction of a pair (default 0.1), which it may
    exceed by a factor of two; it is shorter from about 20 hosts on. The result is empty on one host.
    """
    hosts = comm.hosts
    if len(hosts) == 1:
        return []
    leaders = comm.split(0 if any(ranks[0] == comm.rank for ranks in hosts) else None)
    pairs = list(itertools.combinations(range(len(hosts)), 2))
    each_s = share_s(len(pairs), each_s)
    found = np.zeros((len(pairs), 3))
    if leaders is not None:
        # Hosts are in the order of their lowest ranks, so the rank of a leader is the number of its host.
        with leaders:
            for index, pair in enumerate(pairs):
                joined = leaders.split(0 if leaders.rank in pair else None)
                if joined is not None:
                    with joined:
                        found[index] = _measure_pair(joined, each_s)
                leaders.barrier()
    comm.all_reduce(found, op="max")  # the ranks that did not measure a pair have zeros
    return [LinkTimes(*pair, *map(float, times)) for pair, times in zip(pairs, found, strict=True)]


def share_s(pairs: int, each_s: float) -> float:
    """Return the time for each measurement of a pair."""
    return min(each_s, max(SHORTEST_S, ALL_PAIRS_S / pairs))


def slowest_rate(links: list[LinkTimes]) -> float | None:
    """Return the bytes per second of the slowest link; None on one host."""
    return min((link.rate for link in links), default=None)


def link_rate_in_config(link_rate: float | str | None) -> float:
    """Return the argument ``link_rate`` of ``connect()`` as the configuration of a job has it."""
    if link_rate is None:
        return 0.0
    if link_rate == "measure":
        return MEASURE
    if isinstance(link_rate, bool | str) or not (isinstance(link_rate, int | float) and 0 < link_rate < float("inf")):
        raise UsageError(messages.BAD_LINK_RATE(rate=repr(link_rate)))
    return float(link_rate)


def settle_link_rate(comm: Communicator, config: JobConfig) -> Communicator:
    """Measure the rate of the links if the configuration of the job requests it; return the communicator.

    All ranks have the same configuration. If the measurement fails, the communicator is closed.
    """
    if config.link_rate == MEASURE:
        try:
            config.link_rate = slowest_rate(measure_links(comm)) or 0.0
        except BaseException:
            comm.close()
            raise
    return comm


def _measure_pair(pair: Communicator, each_s: float) -> tuple[float, float, float]:
    """Return the round trip and both rates between two ranks."""
    before_s = _round_trip_s(pair, each_s / 2)
    rates = _rate(pair, 0, each_s), _rate(pair, 1, each_s)
    return min(before_s, _round_trip_s(pair, each_s / 2)), *rates


def _round_trip_s(pair: Communicator, each_s: float) -> float:
    """Return the time of a message of 8 bytes and its answer, the fastest of many; rank 0 decides which is the last.

    If processes share cores, most exchanges also wait while another process runs.
    """
    message, times_s = np.zeros(1), []
    while not message[0]:
        began_s = time.perf_counter()
        for root in (0, 1):
            pair.broadcast(message, root=root, algorithm="naive")
        times_s.append(time.perf_counter() - began_s)
        is_enough = len(times_s) >= WARM_UP + FEWEST and (sum(times_s) > each_s or len(times_s) >= MOST)
        message[0] = is_enough and pair.rank == 0
        pair.broadcast(message, algorithm="naive")
    found = np.array([min(times_s[WARM_UP:])])
    pair.broadcast(found)
    return float(found[0])


def _rate(pair: Communicator, root: int, each_s: float) -> float:
    """Return the bytes per second from rank ``root`` to the other; doubles the bytes until they take long enough."""
    nbytes = FIRST_BYTES
    array = np.zeros(CALL_BYTES // 4, np.float32)
    while True:
        calls = max(1, nbytes // CALL_BYTES)
        part = array[: nbytes // calls // 4]
        pair.barrier()
        began_s = time.perf_counter()
        for _ in range(calls):
            pair.broadcast(part, root=root, algorithm="naive")
        # The sender's calls end when its messages are on the way, so the receiver's time counts.
        spent_s = np.array([time.perf_counter() - began_s])
        pair.all_reduce(spent_s, op="max")
        if spent_s[0] >= each_s / 2 or nbytes >= MOST_BYTES:
            return float(nbytes / spent_s[0])
        nbytes *= 2
