"""The command ``unisono``: reads the arguments and calls a verb."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from collections.abc import Sequence

import unisono
from unisono.errors import ScheduleError, UnisonoError, UsageError

VERBS = ("list", "show", "verify", "draw", "run", "bench", "tune", "info", "demo")


def parser(verb: str | None = None) -> argparse.ArgumentParser:
    """Return the parser for one verb, or for all: a verb imports much that the others do not need."""
    made = argparse.ArgumentParser(
        prog="unisono",
        description="Collective communication as short Python programs: shown, played and proved.",
        epilog="Start with `unisono show ring -n 5 --data`.",
    )
    made.add_argument("--version", action="version", version=f"unisono {unisono.__version__}")
    verbs = made.add_subparsers(metavar="verb")
    for name in (verb,) if verb in VERBS else VERBS:
        importlib.import_module(f"unisono.cli.{name}").add_parser(verbs)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb.

    Exit codes: 0 done, 1 an algorithm is wrong, 2 the call makes no sense, 3 something broke, 130 interrupted; of
    `run`, those of the program.
    """
    words = sys.argv[1:] if argv is None else argv
    commands = parser(words[0] if words else None)
    args = commands.parse_args(words)
    if not hasattr(args, "run"):
        commands.print_help()
        return 2
    try:
        code: int = args.run(args)
        return code
    except UnisonoError as error:
        _complain(type(error).__name__, str(error))
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
        _complain("InternalError", f"a bug of ours, please report it: {found}")
        return 3


def _complain(name: str, message: str) -> None:
    # Here and not above: a job starts sooner without these.
    from rich.markup import escape

    from unisono.cli.output import console

    console(stderr=True).print(f"[red]{name}[/] {escape(message)}", soft_wrap=True)
