"""``unisono bench``: measure collectives, beside other libraries if you like, all in one run."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from rich.markup import escape

from unisono import collectives
from unisono.algorithms import find
from unisono.bench import cases, peers, plot, report
from unisono.bench.measure import Effort, Measurement, measure
from unisono.cli import arguments
from unisono.cli.output import console, print_json, print_table, progress_bar, ranks, table
from unisono.collectives import Collective
from unisono.errors import UsageError

OURS = "unisono"


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "bench", help="measure collectives, beside other libraries", description=arguments.described(__doc__)
    )
    parser.add_argument("collective", nargs="?", default="all_reduce", help="which (default all_reduce)")
    parser.add_argument("-n", dest="size", type=arguments.size, default=2, help="number of ranks (default 2)")
    parser.add_argument(
        "--bytes",
        default="8:64MiB",
        metavar="SIZES",
        help="of the vector: 1MiB, 1KiB,1MiB or, doubling from and to, 8:256MiB (default 8:64MiB)",
    )
    parser.add_argument("--dtype", default="float32", help=f"type: {', '.join(cases.ITEM_BYTES)} (default float32)")
    parser.add_argument("--op", default="sum", help=f"reduction: {', '.join(cases.OPS)} (default sum)")
    parser.add_argument("--algorithm", metavar="NAME", help="the algorithm of unisono (default: its own choice)")
    parser.add_argument(
        "--against",
        default="",
        metavar="NAMES",
        help="who else: gloo, mpi (what is installed), openmpi, mpich, impi (as `make peers` makes them), each in "
        "all its settings or in one, such as openmpi:ucx; torch, which is unisono through torch.distributed; and "
        "memcpy, the bound of the memory",
    )
    parser.add_argument("--peers-only", action="store_true", help="leave unisono itself out")
    parser.add_argument(
        "--peers", type=Path, metavar="FOLDER", help="where the peers are (default: the nearest .peers)"
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
        help="which part of the calls may be quicker than the time shown (default 0.5, the median; 0.1 or so on a "
        "machine that others use too)",
    )
    parser.add_argument(
        "--fastest-trial",
        action="store_true",
        help="count only the trial of each contender that was its fastest: for virtual machines, whose cores may be "
        "near each other in one second and far apart in the next",
    )
    # The names before version 0.2.
    parser.add_argument("--rounds", dest="repeats", type=arguments.count, help=argparse.SUPPRESS)
    parser.add_argument("--quickest-visit", dest="fastest_trial", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds after which a contender that does not answer is dropped (default 60)",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw time and bandwidth into a .png, .svg or .pdf")
    arguments.add_json(parser)
    parser.epilog = "See docs/benchmark.md for what the columns mean and how it is measured."
    parser.set_defaults(run=run)  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Measure, and print a line for each size."""
    if not (0 < args.time_budget <= 3600 and 0 < args.timeout <= 86400):
        raise UsageError("--time-budget and --timeout are seconds; expected more than 0, and not days")
    if not 0 <= args.quantile <= 1:
        raise UsageError(f"--quantile {args.quantile}: expected a number from 0 to 1")
    collective = collectives.find(args.collective)
    if args.algorithm:
        args.algorithm = _checked(args.algorithm, collective, args.size)
    chosen = cases.make_cases(
        collective, cases.parse_sizes(args.bytes), args.dtype, args.op, args.size, args.algorithm
    )  # fmt: skip
    names = args.against if args.peers_only else f"{OURS},{args.against}"
    contenders = peers.make_contenders(names, args.size, args.peers, answer_timeout_s=args.timeout)
    if not contenders:
        raise UsageError("--peers-only leaves nobody to measure; name some with --against")
    if args.plot:
        plot.check_plot(args.plot)
    effort = Effort(args.repeats, args.time_budget, args.quantile, args.fastest_trial)
    with progress_bar(quiet=args.json) as progress:
        trials = len(contenders) * (1 + len(chosen) * (1 + args.repeats))
        bar = progress.add_task("starting", total=trials)
        done = measure(
            contenders, chosen, args.size, effort,
            tell=lambda doing: progress.update(bar, advance=1, description=escape(doing)),
        )  # fmt: skip
    if args.plot and any(result.times for result in done.results):
        plot.draw(done, OURS, args.plot)
    if args.json:
        print_json(report.as_data(done, OURS))
    else:
        _print(done, collective.name)
        _print_notes(done)
    for name, why in done.dropped.items():
        console(stderr=True).print(f"[yellow]dropped[/] {escape(name)}: {escape(why)}", soft_wrap=True)
    wrong = sum(times.wrong for result in done.results for times in result.times.values())
    if wrong:
        console(stderr=True).print(f"[red]{wrong} wrong elements[/]: see the column `wrong`")
    measured = {name for result in done.results for name, times in result.times.items() if times.calls}
    expected = {contender.name for contender in contenders} & {OURS}
    return 1 if wrong else 3 if not measured or not expected <= measured else 0


def _checked(name: str, collective: Collective, size: int) -> str:
    """Return the name of an algorithm, if there is one that can be measured."""
    algorithm = find(name, collective)
    if algorithm.collective is not collective:
        raise UsageError(f"--algorithm {name}: {algorithm} is no algorithm of {collective}")
    if not algorithm.can_serve(size):
        raise UsageError(f"--algorithm {name}: {algorithm} is not for {ranks(size)}, as it says itself")
    return algorithm.name


def _print(done: Measurement, title: str) -> None:
    out = console()
    cores = len(os.sched_getaffinity(0))
    out.print(f"[bold]{title}[/], {ranks(done.size)} on {cores} cores")
    compared = len(done.contenders) > 1
    columns = [">bytes", ">count", "type", "op", ">time\nµs", ">algbw\nGB/s", ">busbw\nGB/s", ">wrong"]
    rows = table(*columns, *(("contender", "best rival", ">its time\nµs", ">ratio") if compared else ()))
    for result in done.results:
        name = report.chosen(done, result, OURS)
        if name is None:
            continue
        found = report.figures(done, result, name)
        cells = [
            *report.case_words(result.case), _significant(found.time_us), _significant(found.algbw),
            _significant(found.busbw), f"[red]{found.wrong}[/]" if found.wrong else "0",
        ]  # fmt: skip
        if compared:
            cells.append(name)
            rival = result.fastest(report.rivals(done, name))
            if rival is not None:
                its = report.figures(done, result, rival)
                cells += [rival, _significant(its.time_us), f"{its.time_us / found.time_us:.2f}×"]
        rows.add_row(*cells)
    print_table(out, rows)
    if compared:
        out.print("[dim]ratio: the time of the best rival over that of the contender; above 1 it is the quicker.[/]")
        _print_all(done)


def _print_all(done: Measurement) -> None:
    out = console()
    out.print()
    sizes = [f">{cases.format_bytes(result.case.bytes)}" for result in done.results]
    rows = table(f"{report.time_word(done.effort)} µs", *sizes)
    for contender in done.contenders:
        cells = []
        for result in done.results:
            measured = result.fastest([contender.name]) is not None
            best = measured and result.fastest([each.name for each in done.contenders if each.communicates])
            cell = _significant(result.times[contender.name].time_s * 1e6) if measured else "-"
            cells.append(f"[green]{cell}[/]" if best == contender.name else cell)
        rows.add_row(escape(contender.name), *cells)
    print_table(out, rows)


def _print_notes(done: Measurement) -> None:
    """Say who could not do what."""
    reasons = {
        f"{name}: {times.unsupported}"
        for result in done.results
        for name, times in result.times.items()
        if times.unsupported
    }
    for reason in sorted(reasons):
        console().print(f"[yellow]note[/] {escape(reason)}", soft_wrap=True)


def _significant(value: float) -> str:
    """Write three digits, or all that are before the point."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
