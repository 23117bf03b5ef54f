"""``unisono tune``: measure which algorithm is the best on this machine, for a number of ranks, and remember it."""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from unisono.cli import arguments
from unisono.cli.output import console, print_json, print_table, table
from unisono.errors import UsageError

BUDGET_S = 40.0


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "tune", help="measure the algorithms on this machine", description=arguments.described(__doc__)
    )
    parser.add_argument(
        "-n", dest="size", type=arguments.size, metavar="SIZE", default=len(os.sched_getaffinity(0)),
        help="number of ranks (default: one for each core)",
    )  # fmt: skip
    parser.add_argument(
        "--budget", type=float, default=BUDGET_S, metavar="S", help=f"seconds to measure for (default {BUDGET_S:.0f})"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the table, do not store it")
    arguments.add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure, show, store."""
    from unisono.comm.tables import store_table, table_path
    from unisono.launch.spawn import spawn

    if not args.budget > 0:
        raise UsageError(f"--budget {args.budget}: expected seconds, more than 0")
    if args.size < 2:
        raise UsageError("tune: there is nothing to choose with one rank; expected -n 2 or more")
    began = time.perf_counter()
    measured = spawn(_tune, args.size, args.budget)[0]
    spent_s = time.perf_counter() - began
    if not args.dry_run:
        store_table(measured)
    if args.json:
        print_json({"ranks": args.size, "seconds": round(spent_s, 1), "table": measured})
        return 0
    rows = table("collective", ">from bytes", "algorithm", title=f"{args.size} ranks, measured in {spent_s:.0f} s")
    for collective, sizes in measured.items():
        for start, name in sizes[str(args.size)]:
            rows.add_row(collective, f"{start:,}", name)
            collective = ""
    out = console()
    print_table(out, rows)
    out.print("not stored (--dry-run)" if args.dry_run else f"stored in {table_path()}")
    return 0


def _tune(comm: Any, budget_s: float) -> Any:
    from unisono.comm.tuning import tune

    return tune(comm, budget_s)
