"""``unisono bench``: measure collectives, alone or in turns with other libraries, on one host or on several."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.markup import escape

from unisono import collectives
from unisono.bench import cases, peers, plot, report
from unisono.bench.cases import Case
from unisono.bench.contender import Contender
from unisono.bench.measure import Effort, Measurement, Result, measure
from unisono.cli import arguments, messages, names, on_hosts
from unisono.cli.bench_rows import BenchRows
from unisono.cli.output import ProgressLines, console, print_json, progress_bar, ranks
from unisono.collectives import Collective
from unisono.errors import UsageError
from unisono.launch.host_list import parse_hosts
from unisono.launch.mps import mps_variables
from unisono.verifier import proof_of

OURS = "unisono"


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "bench", help="measure collectives and compare with other libraries", description=arguments.described(__doc__)
    )
    parser.add_argument("collective", nargs="?", default="all_reduce", help="collective (default all_reduce)")
    parser.add_argument("-n", dest="size", type=arguments.size, default=2, help="number of ranks (default 2)")
    parser.add_argument(
        "--bytes",
        default="8:64MiB",
        metavar="SIZES",
        help="sizes of the vector: 1MiB, a list 1KiB,1MiB, or a range that doubles, 8:256MiB (default 8:64MiB)",
    )
    parser.add_argument("--dtype", default="float32", help=f"type: {', '.join(cases.ITEM_BYTES)} (default float32)")
    parser.add_argument("--op", default="sum", help=f"reduction: {', '.join(cases.OPS)} (default sum)")
    parser.add_argument(
        "--algorithm",
        metavar="NAME",
        help="algorithm of unisono: a built-in, or your own as my.py:my_ring (default: what unisono selects)",
    )
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        default="cpu",
        help="measure arrays on the CPU (default), or tensors on GPUs, which ranks share if there are fewer GPUs "
        "than ranks",
    )
    parser.add_argument(
        "--mps",
        action="store_true",
        help="with --device cuda: ranks that share a GPU use it at the same time, through a private MPS daemon",
    )
    parser.add_argument(
        "--against",
        default="",
        metavar="NAMES",
        help="other contenders, separated by commas: unisono:ALGORITHM, such as unisono:ring or "
        "unisono:my.py:my_ring; gloo; mpi (the installed one); openmpi, mpich, impi (built by `make peers`), each in "
        "all its settings or in one, such as openmpi:ucx; torch (unisono through "
        "torch.distributed); memcpy (the limit of the memory)",
    )
    parser.add_argument("--peers-only", action="store_true", help="do not measure unisono itself")
    parser.add_argument(
        "--peers", type=Path, metavar="FOLDER", help="folder that `make peers` has filled (default: nearest .peers)"
    )
    parser.add_argument(
        "--repeats", type=arguments.count, default=5, help="trials of each contender at each size (default 5)"
    )
    parser.add_argument(
        "--time-budget",
        type=float,
        default=0.5,
        metavar="S",
        help="seconds for each contender at each size, all repeats together (default 0.5)",
    )
    parser.add_argument(
        "--quantile",
        type=float,
        default=0.5,
        metavar="Q",
        help="quantile of call times to report (default 0.5, the median; use about 0.1 on a machine with other load)",
    )
    parser.add_argument(
        "--fastest-trial",
        action="store_true",
        help="report only the fastest trial of each contender: for virtual machines, whose cores may be close to "
        "each other in one second and far apart in the next",
    )
    # Former names of two options.
    parser.add_argument("--rounds", dest="repeats", type=arguments.count, help=argparse.SUPPRESS)
    parser.add_argument("--quickest-visit", dest="fastest_trial", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds after which a contender that does not answer is dropped (default 60)",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="plot time and bandwidth into a .png, .svg or .pdf")
    arguments.add_json(parser)
    on_hosts.add_arguments(parser)
    parser.add_argument(
        "--rate", metavar="RATE",
        help="rate of the link of a host, such as 10Gbit or 1.25GB, for the column `of the bound` on several hosts "
        "(default: measured)",
    )  # fmt: skip
    parser.epilog = "docs/benchmark.md explains the columns and the method."
    parser.set_defaults(run=run)  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Measure, and print a line for each size."""
    if not (0 < args.time_budget <= 3600 and 0 < args.timeout <= 86400):
        raise UsageError(messages.NOT_SECONDS())
    if not 0 <= args.quantile <= 1:
        raise UsageError(messages.NOT_A_QUANTILE(value=args.quantile))
    rate = None if args.rate is None else arguments.rate(args.rate)
    if args.mps and args.device == "cpu":
        raise UsageError(messages.MPS_NEEDS_CUDA())
    if args.device != "cpu" and (on_hosts.is_on_hosts(args) or args.in_job):
        raise UsageError(messages.DEVICE_AND_HOSTS(device=args.device))
    if on_hosts.is_on_hosts(args):
        args.size = parse_hosts(args.hosts)[-1].ranks.stop
        _check(args)
        return on_hosts.run_on_hosts(args, _words_for_ranks(args))
    if args.in_job:
        return _run_in_job(args, rate)
    if rate is not None:
        raise UsageError(messages.NEEDS_HOSTS(option="--rate"))
    chosen = _check(args)
    contender_names = args.against if args.peers_only else f"{OURS},{args.against}"
    peers.check_device(contender_names, args.device)
    with mps_variables(wanted=args.mps) as variables:
        contenders = peers.make_contenders(
            contender_names, args.size, args.peers, answer_timeout_s=args.timeout, variables=variables
        )
        return _measure(args, chosen, contenders)


def _check(args: argparse.Namespace) -> list[Case]:
    """Return the cases to measure; raise an error if the arguments cannot work, before any rank starts."""
    from unisono.bench.job_ranks import check_names

    collective = collectives.find(args.collective)
    for name in _algorithms(args):
        _check_algorithm(name, collective, args.size)
    if args.hosts or args.in_job:
        check_names(args.against)
    if args.peers_only and not peers.split_names(args.against):
        raise UsageError(messages.NO_CONTENDERS())
    if args.plot:
        plot.check_plot(args.plot)
    sizes = cases.parse_sizes(args.bytes)
    return cases.make_cases(collective, sizes, args.dtype, args.op, args.size, args.algorithm, args.device)


def _words_for_ranks(args: argparse.Namespace) -> list[str]:
    """Return the arguments of this verb for the ranks of a job."""
    words = ["bench", args.collective, f"--bytes={args.bytes}", f"--dtype={args.dtype}", f"--op={args.op}"]
    words += [f"--{name}={getattr(args, name)}" for name in ("algorithm", "rate", "plot") if getattr(args, name)]
    words += [f"--against={args.against}", f"--repeats={args.repeats}", f"--time-budget={args.time_budget}"]
    words += [f"--quantile={args.quantile}", f"--timeout={args.timeout}"]
    flags = ("peers_only", "fastest_trial", "json")
    return words + [f"--{name.replace('_', '-')}" for name in flags if getattr(args, name)]


def _run_in_job(args: argparse.Namespace, rate: float | None) -> int:
    """Measure the ranks of a job: all ranks call this, rank 0 decides and prints."""
    from unisono.bench.job_ranks import Executor, contenders_in_job
    from unisono.comm.links import measure_links, slowest_rate

    with on_hosts.joined_job(args) as comm:
        args.size = comm.size
        chosen = _check(args)
        hosts = tuple(map(len, comm.hosts))
        rate_is_measured = rate is None
        rate = slowest_rate(measure_links(comm)) if rate is None else rate
        executor = Executor(comm, args.timeout)
        if comm.rank != 0:
            executor.serve()
            return 0
        contender_names = args.against if args.peers_only else f"{OURS},{args.against}"
        contenders = contenders_in_job(contender_names, executor)
        code = _measure(args, chosen, contenders, hosts=hosts, rate=rate, rate_is_measured=rate_is_measured)
        executor.end()
        return code


def _measure(
    args: argparse.Namespace, chosen: list[Case], contenders: list[Contender], *, hosts: tuple[int, ...] = (),
    rate: float | None = None, rate_is_measured: bool = False,
) -> int:  # fmt: skip
    """Measure, and print a line for each case as soon as it is measured; return the exit code."""
    effort = Effort(args.repeats, args.time_budget, args.quantile, args.fastest_trial)
    rows: BenchRows | None = None

    def on_result(measurement: Measurement, result: Result) -> None:
        if rows is not None:
            rows.add(measurement, result)

    if not args.json:
        rows = BenchRows(
            args.collective, args.size, chosen, contenders, OURS, hosts=hosts, rate=rate,
            rate_is_measured=rate_is_measured,
        )  # fmt: skip
    trials = len(contenders) * (1 + len(chosen) * (1 + args.repeats))
    lines = ProgressLines(trials)
    with progress_bar(quiet=args.json) as progress:
        bar = progress.add_task("starting", total=trials)

        def tell(activity: str) -> None:
            progress.update(bar, advance=1, description=escape(activity))
            if not sys.stderr.isatty():
                lines.advance(activity)

        done = measure(contenders, chosen, args.size, effort, tell, on_result, hosts=hosts, rate=rate)
    if args.plot and any(result.times for result in done.results):
        plot.draw(done, OURS, args.plot)
    if rows is None:
        print_json(report.as_data(done, OURS))
    else:
        rows.finish(done)
    for name, reason in done.dropped.items():
        console(stderr=True).print(f"[yellow]dropped[/] {escape(name)}: {escape(reason)}", soft_wrap=True)
    wrong = sum(times.wrong for result in done.results for times in result.times.values())
    if wrong:
        console(stderr=True).print(f"[red]{messages.WRONG_ELEMENTS(count=wrong)}[/]")
    measured = {name for result in done.results for name, times in result.times.items() if times.calls}
    expected = {contender.name for contender in contenders} & {OURS}
    return 1 if wrong else 3 if not measured or not expected <= measured else 0


def _algorithms(args: argparse.Namespace) -> list[str]:
    """Return the names of the algorithms of unisono that are measured."""
    settings = [name.partition(":") for name in peers.split_names(args.against)]
    return [
        *([args.algorithm] if args.algorithm else []),
        *(algorithm for peer, _, algorithm in settings if peer == OURS and algorithm),
    ]


def _check_algorithm(name: str, collective: Collective, size: int) -> None:
    """Raise an error if an algorithm cannot be measured: once, before any rank starts, and not once per rank."""
    algorithm = names.resolve(name, collective)
    if algorithm.collective is not collective:
        raise UsageError(messages.OTHER_COLLECTIVE(name=name, algorithm=algorithm, collective=collective))
    if not algorithm.can_serve(size):
        raise UsageError(messages.NOT_DECLARED_FOR(name=name, algorithm=algorithm, ranks=ranks(size)))
    proof_of(algorithm.schedule(size))
