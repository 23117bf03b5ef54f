"""``unisono run``: start the ranks of a job on this machine, show what they write, and leave none behind."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
from pathlib import Path

from unisono.cli import arguments
from unisono.errors import UsageError
from unisono.launch.outcome import Outcome
from unisono.launch.run import MOST_RANKS, launch, no_prefix, plain_prefix

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_cyan", "bright_magenta", "bright_green")


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb."""
    parser = verbs.add_parser(
        "run",
        help="start a program on several ranks",
        description=arguments.described(__doc__),
        usage="unisono run [-h] [-n N] [--bind] [--no-prefix] [--trace DIR] "
        "(script.py | -m module | [--] program) ...",
        epilog="Every line that a rank writes is shown whole, with its rank in front. Rank 0 has our standard input. "
        "If a rank fails, the others get two seconds to notice; the exit code is that of the rank that failed first "
        "(the one that the others name), or 128 + n if signal n ended it. Ctrl-C and SIGTERM "
        "reach every rank; who is there after five seconds, or at a second Ctrl-C, is killed.",
    )
    parser.add_argument(
        "-n", dest="size", type=arguments.size, metavar="N", help="number of ranks (default: the cores)"
    )
    parser.add_argument("--bind", action="store_true", help="pin rank r to core r, modulo the number of cores")
    parser.add_argument("--no-prefix", action="store_true", help="write lines as they are, without the rank in front")
    parser.add_argument(
        "--trace", metavar="DIR",
        help="record what every rank does on every communicator, and when, in DIR/run.json: for Perfetto and "
        "`unisono draw`. What an earlier run has left in DIR is replaced",
    )  # fmt: skip
    parser.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="module", help="run a module, as `python -m` does"
    )
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, metavar="script.py",
        help="a Python file, or any other program; everything after it is passed on to it",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the program on all ranks."""
    command = _command(args)
    size = args.size or min(len(os.sched_getaffinity(0)), MOST_RANKS)
    prefix = no_prefix if args.no_prefix else _prefix
    folder = None if args.trace is None else _trace_folder(args.trace)
    outcome = launch(command, size, prefix=prefix, bind=args.bind, trace=str(folder) if folder else None)
    for line in _said(outcome, size) + (_joined_trace(folder, size) if folder else []):
        print(line, file=sys.stderr)
    return outcome.code


def _trace_folder(name: str) -> Path:
    """Make room for a trace."""
    from unisono.tracing.files import clear  # here and not above: a job starts sooner without it

    folder = Path(name).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        clear(folder)
    except OSError as error:
        raise UsageError(f"--trace {name}: {error.strerror}; expected a folder, or the name of a new one") from error
    return folder


def _joined_trace(folder: Path, size: int) -> list[str]:
    """Join what the ranks have recorded; return a line that says where it is."""
    from unisono.tracing.files import JOINED, headers_in, join, parts_in

    parts = parts_in(folder)
    if not parts:
        return ["no trace: no rank has closed a communicator of Unisono"]
    join(parts, folder / JOINED)
    headers = headers_in(folder / JOINED)
    ranks = {header["job_rank"] for header in headers}
    missing = sorted(set(range(size)) - ranks)
    without = f", without that of rank {', '.join(map(str, missing))}" if missing else ""
    dropped = sum(header["dropped"] for header in headers)
    lost = f"; the oldest {dropped} were dropped" if dropped else ""
    events = sum(header["events"] for header in headers)
    return [
        f"trace of {len(ranks)} rank{'s' * (len(ranks) != 1)}{without}: {folder / JOINED} ({events} events{lost})"
    ]


def _command(args: argparse.Namespace) -> list[str]:
    if args.module is not None:
        if not args.module:
            raise UsageError("-m and no module; expected e.g. `unisono run -n 4 -m my_package.train`")
        return [sys.executable, "-m", *args.module]
    program: list[str] = args.program[1:] if args.program[:1] == ["--"] else args.program
    if not program:
        raise UsageError("there is nothing to run; expected e.g. `unisono run -n 4 script.py`")
    name = program[0]
    if name.endswith(".py"):
        if not os.path.isfile(name):
            raise UsageError(f"there is no file {name!r}")
        return [sys.executable, *program]
    if shutil.which(name) is None:
        near = f"; did you mean {name + '.py'!r}?" if os.path.isfile(name + ".py") else ""
        raise UsageError(f"there is no program {name!r}{near or '; expected a file.py, -m module, or a program'}")
    return program


def _prefix(rank: int, descriptor: int) -> bytes:
    """Return what stands before the lines of a rank: in a colour of its own on a terminal."""
    if not os.isatty(descriptor):
        return plain_prefix(rank, descriptor)
    # Here and not above: this takes longer than starting a rank.
    from rich.console import Console
    from rich.text import Text

    shown_on = Console(stderr=descriptor == sys.stderr.fileno(), highlight=False)
    with shown_on.capture() as captured:
        shown_on.print(Text(f"[{rank}]", COLOURS[rank % len(COLOURS)]), end=" ")
    return captured.get().encode()


def _said(outcome: Outcome, size: int) -> list[str]:
    """Return a line on how the job has ended, if not well."""
    if outcome.ended_by is not None:
        return ["interrupted" if outcome.ended_by == signal.SIGINT else f"ended by {outcome.ended_by.name}"]
    if outcome.failed_rank is None:
        return []
    rank = f"rank {outcome.failed_rank} of {size}"
    if outcome.stalled:
        return [f"{rank} did not respond: other ranks timed out while they waited for it"]
    if outcome.returncode == 0:
        return [f"{rank} ended before the others: exit code 0, but they still needed it"]
    how = f"exit code {outcome.returncode}"
    if outcome.returncode < 0:
        how = f"killed by {_name(-outcome.returncode)}"
    return [f"{rank} failed first: {how}"]


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # one of the many real-time signals
        return f"signal {number}"
