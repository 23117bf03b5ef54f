"""``unisono simulate``: predict how long algorithms take on a network."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TaskID

from unisono import networks
from unisono.algorithms import Algorithm
from unisono.algorithms.host_options import network_options
from unisono.bench.cases import format_bytes, parse_sizes
from unisono.cli import arguments
from unisono.cli import simulate_messages as messages
from unisono.cli.draw import add_output, check_output, draw_page
from unisono.cli.names import WrittenSchedule, resolve
from unisono.cli.output import console, print_json, print_paragraph, print_table, progress_bar, ratio, table
from unisono.cli.proof_messages import ALGORITHM
from unisono.collectives import Collective
from unisono.drawing.drawing import Request
from unisono.drawing.simulated import Conditions
from unisono.errors import UsageError
from unisono.message import CHINESE, translated
from unisono.networks import Network
from unisono.schedule import Schedule
from unisono.simulator import Prediction, simulate

DEFAULT_SIZE = 8
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "simulate", help="predict how long algorithms take on a network", description=arguments.described(__doc__)
    )
    parser.add_argument(
        "names", nargs="+", metavar="name", help="e.g. ring, all_gather/ring, my_algo.py:zigzag; several are compared"
    )
    parser.add_argument("-n", dest="size", type=arguments.size, help=f"number of ranks (default {DEFAULT_SIZE})")
    parser.add_argument(
        "--bytes", default="1MiB", metavar="SIZES",
        help="sizes of the vector: 1MiB, a list 1KiB,1MiB, or a range that doubles, 8:64MiB (default 1MiB)",
    )  # fmt: skip
    parser.add_argument(
        "--network", default="ideal", help="a preset, or a network file (.toml); `unisono list --networks` lists them"
    )
    parser.add_argument("--codec", help="encode the messages, such as bf16 (default: none)")
    parser.add_argument(
        "--segments", type=arguments.count, help="segments of each chunk (default: as the engine does)"
    )
    parser.add_argument("--no-contention", action="store_true", help="let messages share links at full speed")
    parser.add_argument("--no-fold", action="store_true", help="simulate every rank, also where ranks behave alike")
    parser.add_argument(
        "--draw", action="store_true",
        help="also draw a page: one algorithm animated in simulated time, or several in a race",
    )  # fmt: skip
    add_output(parser)
    arguments.add_options(parser)
    arguments.add_language(parser)
    arguments.add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print a table for each size of the vector, and draw a page if asked for."""
    if not args.draw and (args.output or args.no_open):
        raise UsageError(messages.OUTPUT_WITHOUT_DRAW())
    if args.draw:
        check_output(args.output, not args.no_open)
    sizes = parse_sizes(args.bytes)
    network = networks.load(args.network)
    collective, algorithms, schedules = _schedules(args, network)
    status = _simulate(args, sizes, network, collective, schedules)
    if args.draw:
        further = {
            "codec": args.codec, "segments": args.segments, "contention": False if args.no_contention else None,
        }  # fmt: skip
        request = Request(
            algorithms, schedules[0].size, args.root, language="zh" if args.lang == "zh" else None,
            options=arguments.options(args.option), conditions=Conditions(network, tuple(sizes), further),
        )  # fmt: skip
        status = draw_page(request, args.output, not args.no_open, to_stderr=args.json) or status
    return status


def _simulate(
    args: argparse.Namespace, sizes: list[int], network: Network, collective: Collective, schedules: list[Schedule]
) -> int:
    predictions: dict[int, list[Prediction]] = {nbytes: [] for nbytes in sizes}
    with progress_bar(args.json) as bar:
        task = bar.add_task("", total=len(sizes) * len(schedules))
        for schedule in schedules:
            for nbytes in sizes:
                show = _progress(bar, task, schedule.label, nbytes, args.lang)
                show(0)
                predictions[nbytes].append(
                    simulate(
                        schedule, nbytes, network, codec=args.codec, segments=args.segments, fold=not args.no_fold,
                        contention=False if args.no_contention else None, progress=show,
                    )
                )  # fmt: skip
                bar.advance(task)
    if args.json:
        print_json([each.as_data() for of_size in predictions.values() for each in of_size])
        return 0
    out = console()
    for nbytes, of_size in predictions.items():
        _print(out, collective, network, nbytes, of_size, args.lang)
    note = translated(messages.PATH_NOTE(), args.lang)
    print_paragraph(out, note, style="dim")
    return 0


def _progress(bar: Progress, task: TaskID, algorithm: str, nbytes: int, language: str) -> Callable[[int], None]:
    """Return a function that shows the number of instructions simulated so far."""

    def show(done: int) -> None:
        doing = messages.SIMULATING(algorithm=algorithm, bytes=format_bytes(nbytes), done=f"{done:,}")
        bar.update(task, description=translated(doing, language))

    return show


def _schedules(
    args: argparse.Namespace, network: Network
) -> tuple[Collective, list[Algorithm | WrittenSchedule], list[Schedule]]:
    """Return the schedules to compare; hierarchical algorithms use the hosts of the network as their nodes."""
    options = arguments.options(args.option)
    collective: Collective | None = None
    found, algorithms = [], []
    for name in args.names:
        algorithm = resolve(
            name, collective if "/" not in name and not name.partition(":")[0].endswith(".py") else None
        )
        written = algorithm.written if isinstance(algorithm, WrittenSchedule) else None
        size = args.size or (written.size if written else DEFAULT_SIZE)
        if written and size != written.size:
            raise UsageError(messages.SIZE_OF_SCHEDULE(name=name, found=written.size, size=size))
        collective = collective or algorithm.collective
        if algorithm.collective is not collective:
            raise UsageError(messages.OTHER_COLLECTIVE(name=name, found=algorithm.collective, expected=collective))
        network.hosts_of(size)  # raises if the network is too small
        own = dict(options)
        if isinstance(algorithm, Algorithm):
            own = {**network_options(algorithm, network, size), **options}
        algorithms.append(algorithm)
        found.append(algorithm.schedule(size, args.root, **own))
    assert collective is not None  # there is at least one name
    return collective, algorithms, found


def _print(
    out: Console, collective: Collective, network: Network, nbytes: int, predictions: list[Prediction], language: str
) -> None:
    """Print the table of one size, the fastest algorithm first."""
    size = predictions[0].size
    title = messages.TITLE(
        collective=collective, size=size, bytes=format_bytes(nbytes), network=network.name,
        title=(network.title_zh if language == CHINESE else "") or network.title or network.name,
    )  # fmt: skip
    headings = (
        ALGORITHM, messages.TIME, messages.OF_BEST, messages.LATENCY, messages.BANDWIDTH, messages.OVERHEAD,
        messages.REDUCTION, messages.WAITING, messages.IDLE, messages.OF_BOUND, messages.BUSIEST,
    )  # fmt: skip
    columns = [translated(heading(), language) for heading in headings]
    made = table(columns[0], *(f">{column}" for column in columns[1:-1]), columns[-1])
    made.title = escape(translated(title, language))
    ordered = sorted(predictions, key=lambda each: each.time_s)
    best = ordered[0].time_s
    for each in ordered:
        bound = max(each.latency_bound_s, each.bandwidth_bound_s)
        link = each.links[0] if each.links else None
        idle = each.waiting_s / each.time_s if each.time_s else 0.0
        made.add_row(
            escape(each.algorithm.partition("/")[2]), format_time(each.time_s),
            f"{each.time_s / best:.2f}×" if best else "", *_parts(each), f"{idle:.0%}",
            ratio(each.time_s / bound) if bound else "",
            escape(f"{translated(link.name, language)} ({link.utilisation:.0%})") if link else "",
        )  # fmt: skip
    print_table(out, made)
    for each in ordered:
        sharing = messages.IGNORED if each.contention_ignored else messages.NOT_SHARED
        contention = (messages.SHARED if each.contention else sharing)()
        note = messages.METHOD(
            algorithm=each.algorithm.partition("/")[2], method=each.method, messages=f"{each.messages:,}",
            passes=each.passes, contention=contention,
        )  # fmt: skip
        print_paragraph(out, translated(note, language), style="dim", first="  ", rest="    ")


def _parts(prediction: Prediction) -> list[str]:
    """Return the parts of the critical path in percent."""
    path = prediction.critical_path
    if path is None or not prediction.time_s:
        return [""] * 5
    seconds = (path.latency_s, path.bandwidth_s, path.overhead_s + path.copy_s, path.reduce_s, path.waiting_s)
    return [f"{each / prediction.time_s:.0%}" for each in seconds]


def format_time(seconds: float) -> str:
    """Write a time with three digits and a unit.

    >>> format_time(0.00012345)
    '123 us'
    """
    for unit, name in UNITS:
        if seconds >= unit:
            return f"{seconds / unit:.{max(0, 2 - len(str(int(seconds / unit))) + 1)}f} {name}"
    return "0 s"
