"""``unisono bench``: measure collectives, alone or in turns with other libraries."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from rich.markup import escape

from unisono import collectives
from unisono.bench import cases, peers, plot, report
from unisono.bench.measure import Effort, Measurement, measure
from unisono.cli import arguments, messages, names
from unisono.cli.output import console, print_json, print_table, progress_bar, ranks, table
from unisono.collectives import Collective
from unisono.errors import UsageError
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
    parser.epilog = "docs/benchmark.md explains the columns and the method."
    parser.set_defaults(run=run)  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Measure, and print a line for each size."""
    if not (0 < args.time_budget <= 3600 and 0 < args.timeout <= 86400):
        raise UsageError(messages.NOT_SECONDS())
    if not 0 <= args.quantile <= 1:
        raise UsageError(messages.NOT_A_QUANTILE(value=args.quantile))
    collective = collectives.find(args.collective)
    for name in _algorithms(args):
        _check_algorithm(name, collective, args.size)
    chosen = cases.make_cases(
        collective, cases.parse_sizes(args.bytes), args.dtype, args.op, args.size, args.algorithm
    )  # fmt: skip
    contender_names = args.against if args.peers_only else f"{OURS},{args.against}"
    contenders = peers.make_contenders(contender_names, args.size, args.peers, answer_timeout_s=args.timeout)
    if not contenders:
        raise UsageError(messages.NO_CONTENDERS())
    if args.plot:
        plot.check_plot(args.plot)
    effort = Effort(args.repeats, args.time_budget, args.quantile, args.fastest_trial)
    with progress_bar(quiet=args.json) as progress:
        trials = len(contenders) * (1 + len(chosen) * (1 + args.repeats))
        bar = progress.add_task("starting", total=trials)
        done = measure(
            contenders, chosen, args.size, effort,
            tell=lambda activity: progress.update(bar, advance=1, description=escape(activity)),
        )  # fmt: skip
    if args.plot and any(result.times for result in done.results):
        plot.draw(done, OURS, args.plot)
    if args.json:
        print_json(report.as_data(done, OURS))
    else:
        _print(done, collective.name)
        _print_notes(done)
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


def _print(done: Measurement, title: str) -> None:
    out = console()
    cores = len(os.sched_getaffinity(0))
    out.print(f"[bold]{title}[/], {ranks(done.size)} on {cores} cores")
    compared = len(done.contenders) > 1
    columns = [">bytes", ">count", "type", "op", ">time\nµs", ">algbw\nGB/s", ">busbw\nGB/s", ">wrong"]
    rows = table(*columns, *(("contender", "best rival", ">rival\nµs", ">ratio") if compared else ()))
    for result in done.results:
        name = report.chosen(done, result, OURS)
        if name is None:
            continue
        figures = report.figures(done, result, name)
        cells = [
            *report.case_words(result.case), _significant(figures.time_us), _significant(figures.algbw),
            _significant(figures.busbw), f"[red]{figures.wrong}[/]" if figures.wrong else "0",
        ]  # fmt: skip
        if compared:
            cells.append(name)
            rival = result.fastest(report.rivals(done, name))
            if rival is not None:
                others = report.figures(done, result, rival)
                cells += [escape(rival), _significant(others.time_us), f"{others.time_us / figures.time_us:.2f}×"]
        rows.add_row(*cells)
    print_table(out, rows)
    if compared:
        out.print("[dim]ratio: time of the best rival divided by that of the contender; above 1 it is faster.[/]")
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
    """Print the cases that a contender does not support."""
    reasons = {
        f"{name}: {times.unsupported}"
        for result in done.results
        for name, times in result.times.items()
        if times.unsupported
    }
    for reason in sorted(reasons):
        console().print(f"[yellow]note[/] {escape(reason)}", soft_wrap=True)


def _significant(value: float) -> str:
    """Write three digits, or all digits before the point."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
