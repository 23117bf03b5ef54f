"""Selects the algorithm of a call, by collective, number of ranks and bytes, and explains the choice.

A *table* lists, for a collective and a number of ranks, the number of bytes from which each algorithm is the best.
``unisono tune`` measures one for this machine; without it, the built-in rules below apply. The table is kept in the
user's cache directory. An invalid table is ignored with a warning: no job fails because of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from unisono import algorithms, collectives
from unisono.algorithms import find
from unisono.algorithms.catalogue import algorithms_serving
from unisono.algorithms.declaration import Algorithm
from unisono.bootstrap.membership import Table
from unisono.cache_files import Unbelievable, read_record, user_cache, warn_ignored, write_record
from unisono.collectives import Collective
from unisono.comm import messages
from unisono.errors import UsageError
from unisono.message import Message
from unisono.verifier import proof_of


class Rule(NamedTuple):
    """The algorithm from a number of bytes on."""

    from_bytes: int
    algorithm: str


KIB = 1024
# Without measurements. Short vectors need few steps, long ones few bytes; and on one machine, where every rank
# reaches every other, the direct algorithms are hard to beat.
BUILT_IN: dict[str, tuple[Rule, ...]] = {
    "all_reduce": (Rule(0, "recursive_doubling"), Rule(8 * KIB, "direct")),
    "all_gather": (Rule(0, "naive"),),
    "reduce_scatter": (Rule(0, "naive"),),
    "broadcast": (Rule(0, "naive"),),
    "reduce": (Rule(0, "naive"),),
    "gather": (Rule(0, "naive"),),
    "scatter": (Rule(0, "naive"),),
    "all_to_all": (Rule(0, "naive"),),
    "barrier": (Rule(0, "dissemination"),),
}
# Where ranks share cores, every step costs a context switch on each core: one step is best while it is cheap.
OVERSUBSCRIBED: dict[str, tuple[Rule, ...]] = {**BUILT_IN, "all_reduce": (Rule(0, "naive"), Rule(4 * KIB, "direct"))}


class Choice(NamedTuple):
    """An algorithm, and the reason for choosing it."""

    algorithm: Algorithm
    reason: Message


def choose(
    collective: Collective, size: int, nbytes: int, table: Table, oversubscribed: bool = False,
    may_be_used: Callable[[Algorithm], bool] = lambda algorithm: True,
) -> Choice:  # fmt: skip
    """Return the algorithm of a call that names none; ``oversubscribed``: there are more ranks than cores.

    If the best one may not be used, the next one in the list that may be used is chosen.
    """
    measured = table.get(collective.name, {}).get(str(size))
    built_in = OVERSUBSCRIBED if oversubscribed else BUILT_IN
    rules = [Rule(*row) for row in measured] if measured else built_in[collective.name]
    rule = max((rule for rule in rules if rule.from_bytes <= nbytes), key=lambda rule: rule.from_bytes)
    origin = messages.MEASURED() if measured else messages.BUILT_IN_RULE()
    best = find(rule.algorithm, collective)
    if may_be_used(best):
        return Choice(best, messages.BEST_FROM(from_bytes=rule.from_bytes, size=size, origin=origin))
    listed = [find(rule.algorithm, collective) for rule in rules]
    other = next(each for each in [*listed, *algorithms_serving(collective, size)] if may_be_used(each))
    return Choice(other, messages.BEST_NOT_ALLOWED(best=best.name, size=size, origin=origin))


class Explanation(NamedTuple):
    """The algorithm of a call, the reason, and the next best one."""

    collective: str
    size: int
    nbytes: int
    algorithm: str
    reason: Message
    next_best: str | None

    def message(self) -> Message:
        """Return the explanation as one sentence."""
        explanation = messages.EXPLANATION(
            collective=self.collective, nbytes=self.nbytes, size=self.size, algorithm=self.algorithm,
            reason=self.reason,
        )  # fmt: skip
        if self.next_best is None:
            return explanation
        return messages.EXPLANATION_WITH_NEXT(explanation=explanation, next_best=self.next_best)

    def __str__(self) -> str:
        return str(self.message())


def explain(
    collective: Collective, size: int, nbytes: int, table: Table, oversubscribed: bool = False
) -> Explanation:
    """Return the algorithm that a call would use, the reason, and the next best one."""
    chosen = choose(collective, size, nbytes, table, oversubscribed)
    return Explanation(
        collective.name, size, nbytes, chosen.algorithm.name, chosen.reason,
        _next_best(collective, size, nbytes, chosen.algorithm.name),
    )  # fmt: skip


def _next_best(collective: Collective, size: int, nbytes: int, chosen: str) -> str | None:
    """Return the algorithm that a simple model of the time puts first among the others."""
    alpha_s, beta_s = 0.3e-6, 1 / 8e9  # a message, and a byte, between two ranks of one machine
    times = {}
    for algorithm in algorithms_serving(collective, size):
        if algorithm.name != chosen:
            proof, _ = proof_of(algorithm.schedule(size))
            times[algorithm.name] = proof.rounds * alpha_s + float(proof.busiest) * nbytes * beta_s
    return min(times, key=lambda name: times[name]) if times else None


# Rank 0 sends the table to the others when they connect, in a message of at most a megabyte.
MOST_TABLE_BYTES = 256 * 1024
MOST_RANKS = 1_000_000
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


def _checked_rules(name: str, size: str, rules: Any) -> list[list[Any]]:
    if not (size.isascii() and size.isdecimal() and len(size) < 8 and 1 <= int(size) <= MOST_RANKS):
        raise _invalid(name, messages.A_NUMBER_OF_RANKS(), size)
    if not isinstance(rules, list) or not rules:
        raise _invalid(messages.TABLE_SIZES(collective=name, size=_short(size)), messages.A_LIST_OF_RULES(), rules)
    known = {each.name: each for each in algorithms.algorithms_of(collectives.find(name))}
    least = 0
    for number, rule in enumerate(rules, 1):
        field = messages.TABLE_RULE(collective=name, size=size, rule=number)
        if not isinstance(rule, list) or len(rule) != 2:
            raise _invalid(field, messages.A_RULE(), rule)
        start, algorithm = rule
        if type(start) is not int or not (least <= start <= LARGEST_BYTES if number > 1 else start == 0):
            raise _invalid(
                field, messages.ZERO_FIRST() if number == 1 else messages.BYTES_ABOVE(least=least - 1), start
            )
        if not isinstance(algorithm, str) or algorithm not in known or not known[algorithm].can_serve(int(size)):
            raise _invalid(field, messages.AN_ALGORITHM_FOR(collective=name, size=size), algorithm)
        least = start + 1
    return rules


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or a number of thousands of digits
        return f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."
