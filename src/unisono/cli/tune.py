"""``unisono tune``: find the fastest algorithms on this machine, for a number of ranks, and store them.

It also measures the rates of this machine (latency, costs of messages, time per byte), by which algorithms are chosen
where nothing was measured, and which the simulator knows as the network this-machine.

With `--hosts a:4,b:4`, or started as the program of a job (`unisono run`, torchrun, srun), it measures the ranks of
the job, which may be on several hosts, and stores the table on each of them.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from unisono.algorithms import user_files
from unisono.cli import arguments, messages, names, on_hosts
from unisono.cli.output import console, print_json, print_paragraph, print_table, ranks, table
from unisono.costs.rates import Rates
from unisono.errors import UsageError
from unisono.launch.host_list import parse_hosts
from unisono.verifier import proof_of

if TYPE_CHECKING:
    from unisono.comm.measured_calls import MeasuredCall

BUDGET_S = 60.0
MACHINE_SHARE = 0.5  # of the budget, for the rates of this machine
LEAST_MACHINE_S = 2.0  # a shorter measurement of the rates would say nothing
MOST_OVERSUBSCRIBED = 4  # ranks per core in the measurement of the rates
MOST_TO_OVERSUBSCRIBE = 8  # ranks: starting many on a large machine would take longer than the measurement
JOBS = 2  # in which the rates are measured for a number of ranks


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "tune",
        help="measure the algorithms on this machine and remember the fastest",
        description=arguments.described(__doc__),
    )
    parser.add_argument(
        "-n", dest="size", type=arguments.size, metavar="SIZE", default=len(os.sched_getaffinity(0)),
        help="number of ranks (default: one per core; in a job, its ranks)",
    )  # fmt: skip
    parser.add_argument(
        "--budget", type=float, default=BUDGET_S, metavar="S", help=f"seconds to measure (default {BUDGET_S:.0f})"
    )
    parser.add_argument(
        "--algorithm", action="append", default=[], metavar="FILE:NAME",
        help="measure your own algorithm beside the built-in ones of its collective; may be repeated; the table is "
        "shown and not stored",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="show the table without storing it")
    arguments.add_json(parser)
    on_hosts.add_arguments(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure the algorithms, print the table, and store it."""
    from unisono.bootstrap.environment import identity_in_job
    from unisono.comm.candidates import with_options
    from unisono.comm.machine import store_machine
    from unisono.comm.tables import store_table, table_path
    from unisono.launch.spawn import spawn

    if not args.budget > 0:
        raise UsageError(messages.NOT_A_BUDGET(value=args.budget))
    if on_hosts.is_on_hosts(args):
        return _run_on_hosts(args)
    in_job = args.in_job or identity_in_job().size > 1
    if args.size < 2 and not in_job:
        raise UsageError(messages.NOTHING_TO_TUNE())
    began, rates = time.perf_counter(), {}
    if in_job:
        with on_hosts.joined_job(args) as comm:
            size, rank = comm.size, comm.rank
            own = _own_algorithms(args.algorithm, size)
            measured = _tune(comm, args.budget, own)
            is_first_on_host = any(ranks[0] == rank for ranks in comm.hosts)
        if rank != 0:
            # Rank 0 of a later job, which reads the table, may be on any of the hosts.
            if is_first_on_host and not (args.dry_run or own):
                store_table(measured)
            return 0
    else:
        size = args.size
        own = _own_algorithms(args.algorithm, size)
        machine_s = 0.0 if own else MACHINE_SHARE * args.budget
        machine_s = machine_s if machine_s >= LEAST_MACHINE_S else 0.0
        measured = spawn(_tune, size, args.budget - machine_s, own)[0]
        if machine_s:
            rates = measure_machine(machine_s)
    spent_s = time.perf_counter() - began
    if not (args.dry_run or own):
        store_table(measured)
        if rates:
            store_machine(rates, len(os.sched_getaffinity(0)))
    (topology,) = {key for sizes in measured.values() for key in sizes}
    if args.json:
        found = {str(ranks): each.as_data() for ranks, each in rates.items()}
        print_json({
            "ranks": size, "topology": topology, "seconds": round(spent_s, 1), "table": measured, "rates": found,
        })  # fmt: skip
        return 0
    where = f"{size} ranks" if topology == str(size) else f"{size} ranks on {topology}"
    rows = table("collective", ">from bytes", "algorithm", title=f"{where}, measured in {spent_s:.0f} s")
    for collective, sizes in measured.items():
        for start, name, *options in sizes[topology]:
            rows.add_row(collective, f"{start:,}", with_options(name, options[0] if options else {}))
            collective = ""
    out = console()
    print_table(out, rows)
    if own:
        print_paragraph(out, messages.OWN_NOT_STORED(name=args.algorithm[0]))
    else:
        out.print(messages.NOT_STORED() if args.dry_run else messages.STORED(path=table_path()))
    return 0


def _run_on_hosts(args: argparse.Namespace) -> int:
    """Start this verb on the ranks of ``args.hosts``."""
    size = parse_hosts(args.hosts)[-1].ranks.stop
    if size < 2:
        raise UsageError(messages.NOTHING_TO_TUNE())
    _own_algorithms(args.algorithm, size)
    words = ["tune", f"--budget={args.budget}", *(f"--algorithm={name}" for name in args.algorithm)]
    words += [f"--{name.replace('_', '-')}" for name in ("dry_run", "json") if getattr(args, name)]
    return on_hosts.run_on_hosts(args, words)


def _own_algorithms(algorithms: list[str], size: int) -> dict[str, list[str]]:
    """Return the names of the user's algorithms by collective; each is proved here, before any rank starts."""
    own: dict[str, list[str]] = {}
    for name in algorithms:
        algorithm = names.resolve(name)
        if not algorithm.can_serve(size):
            raise UsageError(messages.NOT_DECLARED_FOR(name=name, algorithm=algorithm, ranks=ranks(size)))
        proof_of(algorithm.schedule(size))
        if user_files.names_a_file(name):  # the built-in ones are measured in any case
            own.setdefault(algorithm.collective.name, []).append(user_files.absolute(name))
        else:
            own.setdefault(algorithm.collective.name, [])
    return own


def measure_machine(budget_s: float) -> dict[int, Rates]:
    """Return the rates of this machine by number of ranks, measured in about ``budget_s`` seconds."""
    cores = len(os.sched_getaffinity(0))
    return {size: rates_from_calls(calls, size, cores) for size, calls in calibrating_calls(budget_s).items()}


def calibrating_calls(budget_s: float) -> dict[int, list[MeasuredCall]]:
    """Measure the calls that calibrate this machine, by number of ranks.

    The numbers are powers of two up to one rank for each core, and a few for each core, where ranks take turns.
    """
    from unisono.comm.measured_calls import merged
    from unisono.launch.spawn import spawn

    cores = len(os.sched_getaffinity(0))
    numbers = [1 << power for power in range(1, 11) if 1 << power <= max(2, cores)]
    numbers += [times * cores for times in (2, MOST_OVERSUBSCRIBED) if times * cores <= MOST_TO_OVERSUBSCRIBE]
    each_s = budget_s / len(set(numbers)) / JOBS
    return {
        size: merged(spawn(_measure_calls, size, each_s)[0] for _ in range(JOBS)) for size in sorted(set(numbers))
    }


def rates_from_calls(calls: Sequence[MeasuredCall], size: int, cores: int) -> Rates:
    """Return the rates with which the predicted times of some calls on one host are closest to the measured ones."""
    from unisono.bootstrap.job_config import STAGING_BYTES
    from unisono.comm.measured_calls import samples_of
    from unisono.costs.calibration import fit_rates

    return fit_rates(samples_of(calls, (size,), cores), STAGING_BYTES)


def _measure_calls(comm: Any, budget_s: float) -> Any:
    from unisono.comm.measured_calls import bind, measure_calls

    bind(comm)
    return measure_calls(comm, budget_s)


def _tune(comm: Any, budget_s: float, own: dict[str, list[str]]) -> Any:
    from unisono.comm.tuning import tune

    return tune(comm, budget_s, own)
