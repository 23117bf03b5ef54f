"""Reads the arguments that several verbs share: sizes, options, languages."""

from __future__ import annotations

import argparse
import ast
import re
from typing import Any

from unisono.cli import messages
from unisono.errors import UsageError
from unisono.schedule.schedule import DECLARED, Depth

LARGEST = 1_000_000  # ranks
RATE = re.compile(r"([0-9.]{1,12})\s*([KMG]?)(bit|B)?(?:/s|ps)?")
RATE_UNITS = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9}


def described(docstring: str | None) -> str:
    """Return the docstring of a verb's file without the name in front."""
    description = (docstring or "").partition("``: ")[2].strip()
    return description[:1].upper() + description[1:]


def sizes(text: str) -> list[int]:
    """Read ``8``, ``1-64`` or ``1-64,128,251``."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        numbers = len(part) < 20 and first.isdecimal() and (last.isdecimal() or not dash)
        if not numbers or not 1 <= int(first) <= int(last or first) <= LARGEST:
            raise argparse.ArgumentTypeError(messages.NOT_SIZES(text=text))
        found += range(int(first), int(last or first) + 1)
    return sorted(set(found))


def size(text: str) -> int:
    """Read a number of ranks."""
    if not _is_count(text):
        raise argparse.ArgumentTypeError(messages.NOT_A_SIZE(text=text, most=LARGEST))
    return int(text)


def count(text: str) -> int:
    """Read how many of something there shall be."""
    if not _is_count(text):
        raise argparse.ArgumentTypeError(messages.NOT_A_COUNT(text=text, most=LARGEST))
    return int(text)


def _is_count(text: str) -> bool:
    return len(text) <= 9 and text.isdecimal() and 1 <= int(text) <= LARGEST


def depth(text: str) -> Depth:
    """Read the number of messages that a channel holds; None is unbounded."""
    if text == "unbounded":
        return None
    if text == DECLARED:
        return DECLARED
    if len(text) > 9 or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(messages.NOT_A_DEPTH(text=text))
    return int(text)


def options(given: list[str]) -> dict[str, Any]:
    """Read ``--option node=4 --option outer=tree --option node=3,5``."""
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or name in ("rank", "size", "root", "self"):
            raise UsageError(messages.NOT_AN_OPTION(text=text))
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            found[name] = value  # a word, such as the name of an algorithm
    return found


def rate(text: str) -> float:
    """Return the bytes per second of a rate such as ``10Gbit``, ``1.25GB`` or ``1.25e9``."""
    match = RATE.fullmatch(text.strip())
    try:
        found = float(text) if match is None else float(match[1]) * RATE_UNITS[match[2]]
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise UsageError(messages.NOT_A_RATE(text=text))
    return found / 8 if match is not None and match[3] == "bit" else found


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that choose a variant of an algorithm."""
    parser.add_argument("--root", type=int, metavar="R", help="the root of a rooted collective (default 0)")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE",
        help="an option of the algorithm, such as node=4 for hierarchical; may be repeated",
    )  # fmt: skip


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def add_language(parser: argparse.ArgumentParser) -> None:
    """Add --lang."""
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the descriptions (中文: zh)")
