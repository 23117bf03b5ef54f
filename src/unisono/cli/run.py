"""``unisono run``: start the ranks of a job, on this machine or on several hosts, and show their output."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
from pathlib import Path

from unisono.bootstrap.network_options import check_transport
from unisono.cli import arguments
from unisono.cli.tls_options import TLS_FILES, add_tls, tls_of
from unisono.errors import UsageError
from unisono.launch import messages
from unisono.launch.host_list import parse_hosts
from unisono.launch.limits import RANKS_PER_CORE
from unisono.launch.outcome import Outcome
from unisono.launch.run import launch, no_prefix, plain_prefix
from unisono.message import Message

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_cyan", "bright_magenta", "bright_green")


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "run",
        help="start a program on several ranks",
        description=arguments.described(__doc__),
        usage="unisono run [-h] [-n N | --hosts A:N,B:N] [--oversubscribe] [--bind] [--mps] [--no-prefix] "
        "[--trace DIR] (script.py | -m module | [--] program) ...",
        epilog="Lines of output are shown whole, each with its rank (and host) in front. Rank 0 reads the standard "
        "input. If a rank fails, the others have two seconds to report it; the exit code is that of the rank that "
        "failed first, or 128 + n if signal n killed it. Ctrl-C and SIGTERM reach every rank; ranks still running "
        "after five seconds, or at a second Ctrl-C, are killed.",
    )
    parser.add_argument(
        "-n", dest="size", type=arguments.size, metavar="N", help="number of ranks (default: one per core)"
    )
    parser.add_argument(
        "--hosts", metavar="A:N,B:N",
        help="start N ranks (default 1) on each of these hosts, through ssh; the program and Unisono must be at the "
        "same path on every host; the standard input is not read",
    )  # fmt: skip
    parser.add_argument(
        "--rendezvous", metavar="HOST:PORT",
        help="the address at which rank 0 waits for the other hosts (default: the first host, and a random port)",
    )  # fmt: skip
    parser.add_argument(
        "--transport", metavar="NAME",
        help='carry data between hosts with "tcp" (default), "ucx", which supports RDMA, or "ucx:PATH", the path of '
        "its library; a program that states a transport itself is not affected",
    )  # fmt: skip
    parser.add_argument("--ssh", metavar="COMMAND", help="the command that starts a program on a host (default: ssh)")
    add_tls(parser)
    parser.add_argument(
        "--oversubscribe", action="store_true", help=f"allow more than {RANKS_PER_CORE} ranks per core"
    )
    parser.add_argument("--bind", action="store_true", help="pin rank r to core r, modulo the number of cores")
    parser.add_argument(
        "--mps", action="store_true",
        help="let ranks that share a GPU use it at the same time: start a private MPS daemon that ends with the job",
    )  # fmt: skip
    parser.add_argument("--no-prefix", action="store_true", help="show lines without the rank in front")
    parser.add_argument(
        "--trace", metavar="DIR",
        help="trace every communicator of every rank, on all hosts, and write DIR/run.json, for Perfetto and "
        "`unisono draw`; a trace of an earlier run in DIR is replaced",
    )  # fmt: skip
    parser.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="module", help="run a module, as `python -m` does"
    )
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, metavar="script.py",
        help="a Python file, or any other program; all arguments after it are passed to it",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the program on all ranks."""
    command = _command(args)
    if args.hosts is not None:
        return _run_on_hosts(args, command)
    for option in ("rendezvous", "transport", "ssh", *(f"tls-{name}" for name in TLS_FILES)):
        if getattr(args, option.replace("-", "_")) is not None:
            raise UsageError(messages.WITHOUT_HOSTS(option=f"--{option}"))
    size = args.size or len(os.sched_getaffinity(0))
    prefix = no_prefix if args.no_prefix else _prefix
    folder = None if args.trace is None else _trace_folder(args.trace)
    outcome = launch(
        command, size, prefix=prefix, bind=args.bind, trace=str(folder) if folder else None,
        oversubscribe=args.oversubscribe, mps=args.mps,
    )  # fmt: skip
    for line in _summary(outcome, size) + (_joined_trace(folder, size) if folder else []):
        print(line, file=sys.stderr)
    return outcome.code


def _run_on_hosts(args: argparse.Namespace, command: list[str]) -> int:
    from unisono.launch.several_hosts import SSH, HostsOptions, launch_on_hosts  # imported only where it is needed

    if args.mps:
        raise UsageError(messages.MPS_AND_HOSTS())
    hosts = parse_hosts(args.hosts)
    size = hosts[-1].ranks.stop
    if args.size not in (None, size):
        raise UsageError(messages.HOSTS_AND_SIZE(size=args.size, ranks=size))
    if args.transport is not None:
        check_transport(args.transport)
    folder = None if args.trace is None else _trace_folder(args.trace)
    ssh = args.ssh or SSH
    options = HostsOptions(
        ssh, args.rendezvous, not args.no_prefix, args.bind, args.oversubscribe, args.transport,
        None if folder is None else str(folder), tls_of(args),
    )  # fmt: skip
    outcome = launch_on_hosts(command, hosts, sys.executable, options)
    lines = _summary(outcome.job, size) + outcome.trace_problems
    for line in lines + (_joined_trace(folder, size) if folder else []):
        print(line, file=sys.stderr)
    for host, code in outcome.lost:
        test = f"{ssh} {host} {sys.executable} -m unisono info"
        print(messages.HOST_LOST(host=host, code=code, command=test), file=sys.stderr)
    return outcome.code


def _trace_folder(name: str) -> Path:
    """Return the folder for a trace, without the trace of an earlier run."""
    from unisono.tracing.files import clear  # imported here: a job without a trace starts sooner

    folder = Path(name).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        clear(folder)
    except OSError as error:
        raise UsageError(messages.NO_TRACE_FOLDER(name=name, reason=error.strerror)) from error
    return folder


def _joined_trace(folder: Path, size: int) -> list[Message]:
    """Join the traces of the ranks; return a line that names the file."""
    from unisono.tracing.files import JOINED, headers_in, parts_in
    from unisono.tracing.joining import join
    from unisono.tracing.reading import check_header

    parts = parts_in(folder)
    if not parts:
        return [messages.NO_TRACE()]
    try:
        for part in parts:  # they may come from another host
            check_header(part)
        join(parts, folder / JOINED)
    except UsageError as error:  # the outcome of the job matters more
        return [messages.TRACE_NOT_JOINED(path=folder, reason=error.message)]
    headers = headers_in(folder / JOINED)
    ranks = {header["job_rank"] for header in headers}
    # If the program is another launcher, such as torchrun, its ranks are not those of this one.
    expected = set(range(size)) if max(ranks) < size else ranks
    missing = ", ".join(map(str, sorted(expected - ranks)))
    dropped = sum(header["dropped"] for header in headers)
    return [
        messages.TRACE_WRITTEN(
            traced=messages.TRACE_RANK() if len(ranks) == 1 else messages.TRACE_RANKS(count=len(ranks)),
            missing=messages.TRACE_MISSING(ranks=missing) if missing else "",
            path=folder / JOINED,
            events=sum(header["events"] for header in headers),
            dropped=messages.TRACE_DROPPED(count=dropped) if dropped else "",
        )
    ]


def _command(args: argparse.Namespace) -> list[str]:
    if args.module is not None:
        if not args.module:
            raise UsageError(messages.NO_MODULE())
        return [sys.executable, "-m", *args.module]
    program: list[str] = args.program[1:] if args.program[:1] == ["--"] else args.program
    if not program:
        raise UsageError(messages.NO_PROGRAM())
    name = program[0]
    if name.endswith(".py"):
        if not os.path.isfile(name):
            raise UsageError(messages.NO_SUCH_FILE(name=name))
        return [sys.executable, *program]
    if shutil.which(name) is None:
        if os.path.isfile(name + ".py"):
            raise UsageError(messages.DID_YOU_MEAN(name=name, near=name + ".py"))
        raise UsageError(messages.NO_SUCH_PROGRAM(name=name))
    return program


def _prefix(rank: int, descriptor: int) -> bytes:
    """Return the prefix of the lines of a rank: on a terminal, in a colour that depends on the rank."""
    if not os.isatty(descriptor):
        return plain_prefix(rank, descriptor)
    # Imported here: this takes longer than starting a rank.
    from rich.console import Console
    from rich.text import Text

    shown_on = Console(stderr=descriptor == sys.stderr.fileno(), highlight=False)
    with shown_on.capture() as captured:
        shown_on.print(Text(f"[{rank}]", COLOURS[rank % len(COLOURS)]), end=" ")
    return captured.get().encode()


def _summary(outcome: Outcome, size: int) -> list[Message]:
    """Return a line about the end of the job, unless it has ended well."""
    if outcome.ended_by == signal.SIGINT:
        return [messages.INTERRUPTED()]
    if outcome.ended_by is not None:
        return [messages.ENDED_BY_SIGNAL(signal=outcome.ended_by.name)]
    if outcome.failed_rank is None:
        return []
    rank = {"rank": outcome.failed_rank, "size": size}
    if outcome.stalled:
        return [messages.RANK_STALLED(**rank)]
    if outcome.returncode == 0:
        return [messages.RANK_LEFT(**rank)]
    if outcome.returncode < 0:
        return [messages.RANK_FAILED_BY_SIGNAL(**rank, signal=_signal_name(-outcome.returncode))]
    return [messages.RANK_FAILED(**rank, code=outcome.returncode)]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
