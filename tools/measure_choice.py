"""Measures the choice of algorithms: how long it takes, and how good it is on networks of the simulator.

    python tools/measure_choice.py                      # the time of the first choice, and of one for another size
    python tools/measure_choice.py --regret [NETWORK ...]

Times are seconds of the processor, because other processes may use the machine. The *regret* of a choice is the
simulated time of the chosen algorithm divided by that of the best one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from unisono import networks
from unisono.collectives import COLLECTIVES, Collective
from unisono.comm import ranking, topology
from unisono.comm.network_rates import network_hosts, rates_of_network
from unisono.comm.ranking import ranking_for
from unisono.comm.selection import choose
from unisono.comm.simulated_ranking import SimulatedRanking
from unisono.comm.topology import hosts_of, topology_of
from unisono.costs import stored_terms
from unisono.costs.network_model import NetworkModel
from unisono.costs.rates import DEFAULT, Rates
from unisono.networks import PRESETS, Near, Network, Nics

TOPOLOGIES = (
    (2,), (8,), (13,), (64,), (128,), (1000,), (1,) * 7, (1,) * 1000, (4,) * 4, (6,) * 300, (8,) * 1000, (16,) * 20,
    (3, 1), (8, 7, 5, 3),
)  # fmt: skip
NBYTES, OTHER_NBYTES = 1 << 20, 4096
TRIALS = 5
SIZES = (8, 1 << 10, 16 << 10, 256 << 10, 4 << 20, 64 << 20)
ALLOWED = 1.1

# Networks that no preset describes: hosts with fewer NICs than ranks, and with shared memory.
OTHERS = tuple(
    Network(
        name=f"{ranks} ranks, {nics} NICs, {kind}", ranks_per_host=ranks,
        near=Near(kind=kind, latency_s=1e-6, bandwidth=100e9),
        nics=Nics(count=nics, latency_s=5e-6, bandwidth=12.5e9),
    )
    for ranks, nics, kind in ((8, 1, "switch"), (8, 2, "switch"), (6, 3, "switch"), (4, 1, "memory"))
)  # fmt: skip


class Point(NamedTuple):
    """A choice on a network, the best algorithm there, and the regret."""

    network: str
    topology: str
    collective: Collective
    nbytes: int
    chosen: str
    best: str
    regret: float


def forget() -> None:
    """Forget everything that an earlier choice has read or computed, but the modules."""
    for module in (stored_terms, ranking, topology):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def choice_s(collective: Collective, counts: tuple[int, ...], rates: Rates | NetworkModel) -> tuple[float, float]:
    """Return the seconds of the first choice, and of one for another size; the best of a few trials."""
    hosts = None if len(counts) == 1 else hosts_of(counts)
    first, other = [], []
    for _ in range(TRIALS):
        forget()
        for nbytes, times in ((NBYTES, first), (OTHER_NBYTES, other)):
            began_s = time.process_time()
            choose(collective, sum(counts), nbytes, {}, rates, hosts=hosts)
            times.append(time.process_time() - began_s)
    return min(first), min(other)


def print_times() -> None:
    """Print the time of a choice on each topology, over all collectives."""
    print(f"{'topology':<10} {'rates':<13} {'first choice (ms)':<19} {'another size (ms)':<19} slowest")
    for counts in TOPOLOGIES:
        hosts = hosts_of(counts)
        for name, rates in (("this machine", DEFAULT), ("dgx-h100", rates_of_network("dgx-h100", hosts))):
            times = {collective: choice_s(collective, counts, rates) for collective in COLLECTIVES}
            first, other = ([each[number] * 1e3 for each in times.values()] for number in (0, 1))
            slowest = max(times, key=lambda collective: times[collective])
            spans = (f"{min(each):.2f} to {max(each):.2f}" for each in (first, other))
            print("{:<10} {:<13} {:<19} {:<19} {}".format(topology_of(sum(counts), hosts), name, *spans, slowest))


def host_counts(network: Network) -> tuple[int, ...]:
    """Return the numbers of hosts on which choices are compared."""
    most = max(1, 128 // network.ranks_per_host)
    if network.size is not None:
        most = min(most, network.size // network.ranks_per_host)
    counts = (1, 2, 4) if network.ranks_per_host > 1 else (2, 3, 8, 13)
    return tuple(count for count in counts if count <= most)


def points_of(
    network: Network, counts: Sequence[int], sizes: Sequence[int] = SIZES,
    collectives: Sequence[Collective] = COLLECTIVES,
) -> Iterator[Point]:  # fmt: skip
    """Yield the choices on a network, on some numbers of hosts."""
    for count in counts:
        size = count * network.ranks_per_host
        hosts = network_hosts(network, size)
        for collective in collectives:
            simulated = SimulatedRanking(collective, size, None if count == 1 else hosts, network)
            predicted = ranking_for(collective, size, None if count == 1 else hosts, rates_of_network(network, hosts))
            for nbytes in sizes if collective.carries_data else (0,):
                times = {each.variant.key: each.prediction.time_s for each in simulated.ranked(nbytes)}
                best, chosen = min(times, key=lambda key: times[key]), predicted.best(nbytes).key
                regret = times[chosen] / times[best]
                yield Point(network.name, topology_of(size, hosts), collective, nbytes, chosen, best, regret)


def print_regret(names: list[str]) -> None:
    """Print how many choices on each network are within the allowed regret, and name the others."""
    chosen = [networks.load(name) for name in names or PRESETS]
    exceptions: list[Point] = []
    total = 0
    print(f"{'network':<24} {'choices':>7} {'within ' + str(ALLOWED):>10} {'largest regret':>15}", flush=True)
    for network in (*chosen, *(() if names else OTHERS)):
        points = list(points_of(network, host_counts(network)))
        beyond = [point for point in points if point.regret > ALLOWED]
        share = 1 - len(beyond) / len(points)
        largest = max(point.regret for point in points)
        print(f"{network.name:<24} {len(points):>7} {share:>10.1%} {largest:>15.2f}", flush=True)
        total, exceptions = total + len(points), exceptions + beyond
    print(f"{'all':<24} {total:>7} {1 - len(exceptions) / total:>10.1%}\n\nexceptions:")
    for point in sorted(exceptions, key=lambda point: -point.regret):
        print(
            f"{point.regret:.2f}  {point.network}, {point.topology}, {point.collective}, {point.nbytes} bytes: "
            f"{point.chosen} instead of {point.best}"
        )


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--regret", action="store_true", help="compare choices with simulations")
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help="networks or files (default: all presets)")
    args = parser.parse_args()
    if args.regret or args.networks:
        print_regret(args.networks)
    else:
        print_times()


if __name__ == "__main__":
    main()
