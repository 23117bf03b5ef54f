"""The command ``unisono``: reads the arguments and calls a verb."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence

from rich.markup import escape

import unisono
from unisono.cli import bench, demo, info, list, show, verify  # noqa: A004 (the verb list)
from unisono.cli.output import console
from unisono.errors import ScheduleError, UnisonoError, UsageError

VERBS = (list, show, verify, bench, info, demo)


def parser() -> argparse.ArgumentParser:
    """Return the parser for all verbs."""
    made = argparse.ArgumentParser(
        prog="unisono",
        description="Collective communication as short Python programs: shown, played and proved.",
        epilog="Start with `unisono show ring -n 5 --data`.",
    )
    made.add_argument("--version", action="version", version=f"unisono {unisono.__version__}")
    verbs = made.add_subparsers(metavar="verb")
    for verb in VERBS:
        verb.add_parser(verbs)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb.

    Exit codes: 0 done, 1 an algorithm is wrong, 2 the call makes no sense, 3 something broke, 130 interrupted.
    """
    commands = parser()
    args = commands.parse_args(argv)
    if not hasattr(args, "run"):
        commands.print_help()
        return 2
    try:
        code: int = args.run(args)
        return code
    except UnisonoError as error:
        console(stderr=True).print(f"[red]{type(error).__name__}[/] {escape(str(error))}", soft_wrap=True)
        return 1 if isinstance(error, ScheduleError) else 2 if isinstance(error, UsageError) else 3
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # e.g. `unisono list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        found = f"{type(error).__name__}: {error} (line {at.lineno} of {at.filename.rpartition('/')[2]})"
        console(stderr=True).print(f"[red]InternalError[/] a bug of ours, please report it: {escape(found)}")
        return 3
