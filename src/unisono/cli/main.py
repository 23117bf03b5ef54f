"""The command ``unisono``: reads the arguments and runs a verb."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from difflib import get_close_matches

import unisono
from unisono import native_engine
from unisono.cli import messages
from unisono.errors import ScheduleError, UnisonoError, UsageError
from unisono.message import CHINESE, ENGLISH, listed, translated

VERBS = (
    "list",
    "show",
    "verify",
    "draw",
    "simulate",
    "run",
    "merge",
    "bench",
    "explain",
    "plan",
    "tune",
    "info",
    "demo",
)
# Started by other verbs, not by users.
HIDDEN_VERBS = ("agent",)
# They start ranks, or measure them. Without the engine, their modules are not imported: they use what only Linux has.
NATIVE_VERBS = ("run", "bench", "tune", "agent")


def parser(verb: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of one verb, or of all; a verb imports much that the others do not need."""
    commands = argparse.ArgumentParser(
        prog="unisono",
        description="Collective communication as short Python programs that are proved, drawn and executed.",
        epilog="Start with `unisono show ring -n 5 --data`.",
    )
    commands.add_argument("--version", action="version", version=f"unisono {unisono.__version__}")
    verbs = commands.add_subparsers(metavar="verb")
    for name in (verb,) if verb in (*VERBS, *HIDDEN_VERBS) else VERBS:
        if name in NATIVE_VERBS and not native_engine.is_installed():
            verbs.add_parser(name, help="needs the native engine, which is not installed")
            continue
        importlib.import_module(f"unisono.cli.{name}").add_parser(verbs)
    return commands


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb.

    Exit codes: 0 success, 1 an algorithm is wrong, 2 the arguments are wrong, 3 another failure, 130 interrupted.
    `unisono run` returns the exit code of the program.
    """
    words = sys.argv[1:] if argv is None else argv
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(errors="backslashreplace")  # a pipe on Windows cannot encode every character
    if words and not words[0].startswith("-") and words[0] not in (*VERBS, *HIDDEN_VERBS):
        _report("UsageError", translated(_unknown(words[0]), _language(words)))
        return 2
    if words and words[0] in NATIVE_VERBS and not native_engine.is_installed():
        error = native_engine.missing(native_engine.CALL(name=f"`unisono {words[0]}`"))
        _report(type(error).__name__, error.text(_language(words)))
        return 3
    commands = parser(words[0] if words else None)
    args = commands.parse_args(words)
    if not hasattr(args, "run"):
        commands.print_help()
        return 2
    try:
        code: int = args.run(args)
        return code
    except UnisonoError as error:
        _report(type(error).__name__, error.text(_language(words)))
        return 1 if isinstance(error, ScheduleError) else 2 if isinstance(error, UsageError) else 3
    except KeyboardInterrupt:
        print(translated(messages.INTERRUPTED(), _language(words)), file=sys.stderr)
        return 130
    except BrokenPipeError:  # e.g. `unisono list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        kind = f"{type(error).__name__}: {error}"
        message = messages.INTERNAL(error=kind, line=at.lineno, file=at.filename.rpartition("/")[2])
        _report("InternalError", translated(message, _language(words)))
        return 3


def _language(words: Sequence[str]) -> str:
    """Return the language that the arguments request; they may be wrong otherwise."""
    pairs = zip(words, [*words[1:], ""], strict=True)
    is_chinese = any(word == f"--lang={CHINESE}" or (word, after) == ("--lang", CHINESE) for word, after in pairs)
    return CHINESE if is_chinese else ENGLISH


def _unknown(verb: str) -> str:
    near = get_close_matches(verb, VERBS, n=1)
    if near:
        return messages.MEANT_VERB(verb=verb, near=near[0])
    return messages.NO_VERB(verb=verb, verbs=listed(VERBS))


def _report(name: str, message: str) -> None:
    # Imported here, because a job starts sooner without them.
    from rich.markup import escape

    from unisono.cli.output import console

    console(stderr=True).print(f"[red]{name}[/] {escape(message)}", soft_wrap=True)
