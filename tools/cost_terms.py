"""Writes the cost terms of the built-in algorithms to ``src/unisono/costs/data`` (src/unisono/costs/stored_terms.py).

    python tools/cost_terms.py [--engine | --network] [COLLECTIVE ...]

Run it after a change of an algorithm, or of the way in which terms are found; ``tests/costs`` compares some of them.
"""

from __future__ import annotations

import argparse
import time

from network_terms import network_terms
from unisono import collectives
from unisono.collectives import Collective
from unisono.comm.candidates import candidates_for
from unisono.comm.topology import hosts_of
from unisono.costs.critical_path import terms_of
from unisono.costs.stored_terms import (
    ENGINE,
    KINDS,
    NETWORK,
    ONE,
    line_name,
    nics_of,
    packed,
    path_of,
    row_of,
    stored_topologies,
)
from unisono.costs.terms import Terms
from unisono.schedule import Schedule

Record = dict[str, list[float]]


def record_of(collective: Collective, hosts: int, ranks: int, kind: str, nics: str = ONE) -> Record:
    """Return the terms of all candidates on a topology, as a line of a file has them."""
    size, places = hosts * ranks, hosts_of((ranks,) * hosts)
    root = 0 if collective.rooted else None

    def terms(schedule: Schedule) -> Terms:
        if kind == ENGINE:
            return terms_of(schedule, places)
        return network_terms(schedule, hosts, ranks, nics_of(nics, ranks))

    return {
        variant.key: row_of(terms(variant.schedule(size, root)), kind)
        for variant in candidates_for(collective, size, places, any_transport=kind == NETWORK)
        if variant.is_practical(size)
    }


def write(collective: Collective, kind: str) -> None:
    """Write a file of a collective."""
    lines = []
    began_s = time.process_time()
    for hosts, ranks, nics in stored_topologies(kind):
        name, record = line_name(hosts, ranks, nics), record_of(collective, hosts, ranks, kind, nics)
        lines.append(f"{name}\t{packed(record)}\n")
        print(f"{kind} {collective} {name}: {len(record)}, {time.process_time() - began_s:.1f} s", flush=True)
    path = path_of(collective.name, kind)
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(lines), "ascii")


def main() -> None:
    """Write the files of the collectives that are named, or of all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("collectives", nargs="*", metavar="COLLECTIVE")
    parser.add_argument(
        "--engine", action="store_const", const=[ENGINE], dest="kinds", help="only those of the engine"
    )
    parser.add_argument(
        "--network", action="store_const", const=[NETWORK], dest="kinds", help="only those of networks"
    )
    args = parser.parse_args()
    for collective in [collectives.find(name) for name in args.collectives] or collectives.COLLECTIVES:
        for kind in args.kinds or KINDS:
            write(collective, kind)


if __name__ == "__main__":
    main()
