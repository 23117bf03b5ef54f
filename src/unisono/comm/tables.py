"""Where the measured table of algorithms is kept (see selection.py).

A table that makes no sense is not used, and a warning says why: no job fails because of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unisono import algorithms, collectives
from unisono.bootstrap.membership import Table
from unisono.cache_files import Unbelievable, read_record, user_cache, warn_ignored, write_record
from unisono.errors import UsageError

# Rank 0 sends the table to the others when they connect, in a message of at most a megabyte.
MOST_BYTES = 256 * 1024
MOST_RANKS = 1_000_000
LARGEST = 2**63 - 1  # bytes
HINT = "the built-in rules are used; run `unisono tune` again, or delete the file"


def table_path() -> Path:
    """Return the file; a user may delete it at any time."""
    return user_cache() / "algorithms.json"


def load_table() -> Table:
    """Return what was measured on this machine; nothing if it was not, or if the table makes no sense."""
    path = table_path()
    try:
        found = read_record(path, MOST_BYTES)
        return {} if found is None else checked_table(found)
    except Unbelievable as error:
        warn_ignored(path, str(error), HINT)
        return {}


def store_table(measured: Table) -> None:
    """Add what was measured to what is stored; other numbers of ranks stay as they were."""
    known = load_table()
    for collective, sizes in measured.items():
        known.setdefault(collective, {}).update(sizes)
    path = table_path()
    try:
        write_record(path, {"table": known}, indent=1)
    except (OSError, Unbelievable) as error:
        reason = (error.strerror or error) if isinstance(error, OSError) else error
        raise UsageError(f"the table of algorithms cannot be stored in {path}: {reason}") from error


def checked_table(record: Any) -> Table:
    """Return the table in a record; raise Unbelievable that names the first rule that makes no sense."""
    if not isinstance(record, dict) or not isinstance(record.get("table"), dict):
        raise Unbelievable(f'expected {{"table": {{...}}}}, found {_short(record)}')
    table: Table = {}
    for name, sizes in record["table"].items():
        if name not in {collective.name for collective in collectives.COLLECTIVES}:
            raise Unbelievable(f"expected the name of a collective, found {_short(name)}")
        if not isinstance(sizes, dict):
            raise Unbelievable(f"{name}: expected rules for each number of ranks, found {_short(sizes)}")
        table[name] = {size: _checked_rules(name, size, rules) for size, rules in sizes.items()}
    return table


def _checked_rules(name: str, size: str, rules: Any) -> list[list[Any]]:
    about = f"{name}, {_short(size)} ranks"
    if not (size.isascii() and size.isdecimal() and len(size) < 8 and 1 <= int(size) <= MOST_RANKS):
        raise Unbelievable(f"{name}: expected a number of ranks, found {_short(size)}")
    if not isinstance(rules, list) or not rules:
        raise Unbelievable(f"{about}: expected a list of rules, found {_short(rules)}")
    known = {one.name: one for one in algorithms.of(collectives.find(name))}
    least = 0
    for number, rule in enumerate(rules, 1):
        about = f"{name}, {size} ranks, rule {number}"
        if not isinstance(rule, list) or len(rule) != 2:
            raise Unbelievable(f"{about}: expected [bytes, algorithm], found {_short(rule)}")
        start, algorithm = rule
        if type(start) is not int or not (least <= start <= LARGEST if number > 1 else start == 0):
            wanted = "0, as the first rule" if number == 1 else f"a number of bytes above {least - 1}"
            raise Unbelievable(f"{about}: expected {wanted}, found {_short(start)}")
        if not isinstance(algorithm, str) or algorithm not in known or not known[algorithm].can_serve(int(size)):
            raise Unbelievable(
                f"{about}: expected an algorithm of {name} for {size} ranks, found {_short(algorithm)}"
            )
        least = start + 1
    return rules


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or a number of thousands of digits
        return f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
