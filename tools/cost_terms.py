"""Writes the cost terms of the built-in algorithms to ``src/unisono/costs/data`` (src/unisono/costs/stored_terms.py).

    python tools/cost_terms.py [COLLECTIVE ...]

Run it after a change of an algorithm, or of the way in which terms are found; ``tests/costs`` compares some of them.
"""

from __future__ import annotations

import argparse
import json
import time

from unisono import collectives
from unisono.collectives import Collective
from unisono.comm.candidates import candidates_for
from unisono.comm.topology import hosts_of
from unisono.costs.critical_path import terms_of
from unisono.costs.stored_terms import DATA, line_name, stored_topologies


def record_of(collective: Collective, hosts: int, ranks: int) -> dict[str, list[object]]:
    """Return the terms of all candidates on a topology, as a line of the file has them."""
    size, places = hosts * ranks, hosts_of((ranks,) * hosts)
    root = 0 if collective.rooted else None
    return {
        variant.key: terms_of(variant.schedule(size, root), places).as_data()
        for variant in candidates_for(collective, size, places)
        if variant.is_practical(size)
    }


def write(collective: Collective) -> None:
    """Write the file of a collective."""
    DATA.mkdir(exist_ok=True)
    lines = []
    for hosts, ranks in stored_topologies():
        began_s = time.perf_counter()
        record = record_of(collective, hosts, ranks)
        lines.append(f"{line_name(hosts, ranks)}\t{json.dumps(record, separators=(',', ':'))}\n")
        print(f"{collective} {line_name(hosts, ranks)}: {len(record)} in {time.perf_counter() - began_s:.1f} s")
    (DATA / f"{collective.name}.tsv").write_text("".join(lines), "ascii")


def main() -> None:
    """Write the files of the collectives that are named, or of all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("collectives", nargs="*", metavar="COLLECTIVE")
    names = parser.parse_args().collectives
    for collective in [collectives.find(name) for name in names] or collectives.COLLECTIVES:
        write(collective)


if __name__ == "__main__":
    main()
