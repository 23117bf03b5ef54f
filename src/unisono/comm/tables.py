"""The table of measured algorithms: for a collective and a topology, the sizes from which each algorithm is the best.

``unisono tune`` measures it (tuning.py). It is kept in the cache directory of the user. An invalid table is ignored
with a warning: no job fails because of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unisono import algorithms, collectives
from unisono.algorithms.declaration import Algorithm
from unisono.algorithms.host_options import host_options
from unisono.bootstrap.job_config import Table
from unisono.cache_files import Unbelievable, read_record, user_cache, warn_ignored, write_record
from unisono.comm import messages
from unisono.comm.topology import hosts_of, rank_counts
from unisono.errors import UsageError

# Rank 0 sends the table to the others when they connect, in a message of at most a megabyte.
MOST_TABLE_BYTES = 256 * 1024
LARGEST_BYTES = 2**63 - 1


def table_path() -> Path:
    """Return the path of the table file; a user may delete it at any time."""
    return user_cache() / "algorithms.json"


def load_table() -> Table:
    """Return the table that was measured on this machine; an empty one if there is none, or if it is invalid."""
    path = table_path()
    try:
        record = read_record(path, MOST_TABLE_BYTES)
        return {} if record is None else checked_table(record)
    except Unbelievable as error:
        warn_ignored(path, str(error), messages.TABLE_HINT())
        return {}


def store_table(measured: Table) -> None:
    """Add measurements to the stored table; other numbers of ranks keep their rules."""
    table = load_table()
    for collective, sizes in measured.items():
        table.setdefault(collective, {}).update(sizes)
    path = table_path()
    try:
        write_record(path, {"table": table}, indent=1)
    except (OSError, Unbelievable) as error:
        reason = (error.strerror or error) if isinstance(error, OSError) else error
        raise UsageError(messages.TABLE_NOT_STORED(path=path, reason=reason)) from error


def checked_table(record: Any) -> Table:
    """Return the table of a record; raise Unbelievable that names the first invalid rule."""
    if not isinstance(record, dict) or not isinstance(record.get("table"), dict):
        raise Unbelievable(messages.TABLE_EXPECTED(expected='{"table": {...}}', found=_short(record)))
    table: Table = {}
    for name, sizes in record["table"].items():
        if name not in {collective.name for collective in collectives.COLLECTIVES}:
            raise Unbelievable(messages.TABLE_EXPECTED(expected=messages.A_COLLECTIVE_NAME(), found=_short(name)))
        if not isinstance(sizes, dict):
            raise _invalid(name, messages.RULES_BY_RANKS(), sizes)
        table[name] = {size: _checked_rules(name, size, rules) for size, rules in sizes.items()}
    return table


def _invalid(field: str, expected: str, found: Any) -> Unbelievable:
    return Unbelievable(messages.TABLE_FIELD(field=field, expected=expected, found=_short(found)))


def _checked_rules(name: str, topology: str, rules: Any) -> list[list[Any]]:
    counts = rank_counts(topology)
    if counts is None:
        raise _invalid(name, messages.A_TOPOLOGY(), topology)
    if not isinstance(rules, list) or not rules:
        field = messages.TABLE_SIZES(collective=name, size=_short(topology))
        raise _invalid(field, messages.A_LIST_OF_RULES(), rules)
    known = {each.name: each for each in algorithms.algorithms_of(collectives.find(name))}
    least = 0
    for number, rule in enumerate(rules, 1):
        field = messages.TABLE_RULE(collective=name, size=topology, rule=number)
        if not isinstance(rule, list) or len(rule) not in (2, 3) or not isinstance([*rule, {}][2], dict):
            raise _invalid(field, messages.A_RULE(), rule)
        start, algorithm = rule[:2]
        if type(start) is not int or not (least <= start <= LARGEST_BYTES if number > 1 else start == 0):
            raise _invalid(
                field, messages.ZERO_FIRST() if number == 1 else messages.BYTES_ABOVE(least=least - 1), start
            )
        if not isinstance(algorithm, str) or algorithm not in known or not known[algorithm].can_serve(sum(counts)):
            raise _invalid(field, messages.AN_ALGORITHM_FOR(collective=name, size=topology), algorithm)
        if len(rule) == 3 and not _options_fit(known[algorithm], counts, rule[2]):
            raise _invalid(field, messages.OPTIONS_OF(algorithm=known[algorithm]), rule[2])
        least = start + 1
    return rules


def _options_fit(algorithm: Algorithm, counts: tuple[int, ...], options: dict[str, Any]) -> bool:
    """Return whether an algorithm has these options, and whether they name built-in algorithms or numbers."""
    if not all(type(value) in (str, int) for value in options.values()):
        return False
    try:
        algorithm.schedule(sum(counts), **{**host_options(algorithm, hosts_of(counts)), **options})
    except UsageError:
        return False
    return True


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or a number of thousands of digits
        return f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
