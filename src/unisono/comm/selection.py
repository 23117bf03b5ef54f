"""Selects the algorithm of a call, by collective, topology and bytes, and explains the choice.

A *table* lists, for a collective and a topology (topology.py), the number of bytes from which each algorithm is best.
``unisono tune`` measures one for this machine; without it, the built-in rules below apply. The table is kept in the
user's cache directory. An invalid table is ignored with a warning: no job fails because of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from unisono import algorithms, collectives
from unisono.algorithms.catalogue import algorithms_serving
from unisono.algorithms.declaration import Algorithm
from unisono.algorithms.nodes import crossing_part
from unisono.bootstrap.job_resources import Table
from unisono.cache_files import Unbelievable, read_record, user_cache, warn_ignored, write_record
from unisono.collectives import Collective
from unisono.comm import codec_messages, messages
from unisono.comm.codec_agreement import agrees, rounding_mode_of
from unisono.comm.codec_choice import CodecChoice
from unisono.comm.rules import FALLBACK, NO_OPTIONS, Rule, Variant, rules_for, variant_of, with_options
from unisono.comm.topology import host_options, hosts_of, rank_counts, topology_of
from unisono.compiler import Hosts
from unisono.errors import UsageError
from unisono.message import Message
from unisono.verifier import proof_of


class Choice(NamedTuple):
    """An algorithm, the reason for choosing it, and its options."""

    algorithm: Algorithm
    reason: Message
    options: Mapping[str, Any] = NO_OPTIONS


def choose(
    collective: Collective, size: int, nbytes: int, table: Table, oversubscribed: bool = False,
    may_be_used: Callable[[Variant], bool] = lambda variant: True, hosts: Hosts | None = None,
) -> Choice:  # fmt: skip
    """Return the algorithm of a call that names none; ``oversubscribed``: there are more ranks than cores.

    ``hosts`` are the ranks of each host; None stands for one host. If the best algorithm may not be used, the next
    one in the list that may be used is chosen.
    """
    topology = topology_of(size, hosts)
    measured = table.get(collective.name, {}).get(topology)
    rules = [Rule(*row) for row in measured] if measured else rules_for(collective, hosts, oversubscribed)
    rule = max((rule for rule in rules if rule.from_bytes <= nbytes), key=lambda rule: rule.from_bytes)
    several = hosts is not None and len(hosts) > 1
    origin = _origin(bool(measured), several)
    best = variant_of(collective, rule, hosts)
    if best.is_practical(size) and may_be_used(best):
        found = messages.BEST_FROM_ON_HOSTS if several else messages.BEST_FROM
        sizes = _sizes_of(rule, rules)
        reason = found(sizes=sizes, size=size, topology=topology, origin=origin)
        return Choice(best.algorithm, reason, best.options)
    listed = [*rules, *(FALLBACK if several else {}).get(collective.name, ())]
    listed.sort(key=lambda rule: (rule.from_bytes > nbytes, -rule.from_bytes))  # first those that apply to this size
    others = [variant_of(collective, rule, hosts) for rule in listed]
    others += [Variant(each, host_options(each, hosts)) for each in algorithms_serving(collective, size)]
    other = next(each for each in others if each.is_practical(size) and may_be_used(each))
    not_allowed = messages.BEST_NOT_ALLOWED_ON_HOSTS if several else messages.BEST_NOT_ALLOWED
    reason = not_allowed(best=best.name, size=size, topology=topology, origin=origin)
    return Choice(other.algorithm, reason, other.options)


def _sizes_of(rule: Rule, rules: Sequence[Rule]) -> Message:
    """Return the sizes to which a rule applies: from its own start up to the start of the next rule."""
    start = rule.from_bytes
    end = min((other.from_bytes for other in rules if other.from_bytes > start), default=None)
    if end is None:
        return messages.SIZES_FROM(start=start) if start else messages.ANY_SIZE()
    return messages.SIZES_BETWEEN(start=start, last=end - 1) if start else messages.SIZES_BELOW(end=end)


def _origin(measured: bool, several: bool) -> Message:
    if measured:
        return messages.MEASURED_ON_HOSTS() if several else messages.MEASURED()
    return messages.BUILT_IN_RULE()


class Explanation(NamedTuple):
    """The algorithm of a call, the reason, and the next best one.

    A call of ``collective`` with ``nbytes`` bytes on ``size`` ranks uses ``algorithm`` with these ``options``
    (default: none), because of ``reason``. ``next_best`` is the next best algorithm, or None. ``topology`` describes
    the hosts: "8", "2x4" or "3+1" (topology.py). If the call allows a codec (``codec="auto:..."``), ``codec`` is the
    one that it uses, or None, because of ``codec_reason`` (default: both None).
    """

    collective: str
    size: int
    nbytes: int
    algorithm: str
    reason: Message
    next_best: str | None
    topology: str
    options: Mapping[str, Any] = NO_OPTIONS
    codec: str | None = None
    codec_reason: Message | None = None

    def message(self) -> Message:
        """Return the explanation as one sentence."""
        explanation = messages.EXPLANATION(
            collective=self.collective, nbytes=self.nbytes, size=self.size, reason=self.reason,
            algorithm=with_options(self.algorithm, self.options),
        )  # fmt: skip
        if self.next_best is not None:
            explanation = messages.EXPLANATION_WITH_NEXT(explanation=explanation, next_best=self.next_best)
        if self.codec_reason is None:
            return explanation
        return codec_messages.EXPLANATION_WITH_CODEC(explanation=explanation, reason=self.codec_reason)

    def __str__(self) -> str:
        return str(self.message())


def explain(
    collective: Collective, size: int, nbytes: int, table: Table, oversubscribed: bool = False,
    hosts: Hosts | None = None, codec: CodecChoice | None = None,
) -> Explanation:  # fmt: skip
    """Return the algorithm that a call with this codec would use, the reason, and the next best one."""
    used = None if codec is None else codec.codec
    rounding, root = rounding_mode_of(used), 0 if collective.rooted else None
    chosen = choose(
        collective, size, nbytes, table, oversubscribed,
        lambda each: used is None or agrees(each.schedule(size, root), rounding), hosts,
    )  # fmt: skip
    return Explanation(
        collective.name, size, nbytes, chosen.algorithm.name, chosen.reason,
        _next_best(collective, size, nbytes, chosen.algorithm.name, hosts), topology_of(size, hosts), chosen.options,
        None if used is None else str(used), None if codec is None else codec.reason,
    )  # fmt: skip


def _next_best(collective: Collective, size: int, nbytes: int, chosen: str, hosts: Hosts | None) -> str | None:
    """Return the algorithm that a simple model of the time puts first among the others."""
    alpha_s, beta_s = 0.3e-6, 1 / 8e9  # a message, and a byte, between two ranks of one machine
    far_alpha_s, far_beta_s = 10e-6, 1 / 1.25e9  # a round, and a byte on the link of a host, between hosts
    times = {}
    for algorithm in algorithms_serving(collective, size):
        variant = Variant(algorithm, host_options(algorithm, hosts))
        if algorithm.name != chosen and variant.is_practical(size):
            schedule = variant.schedule(size)
            proof, _ = proof_of(schedule)
            if hosts is None or len(hosts) == 1:
                times[algorithm.name] = proof.rounds * alpha_s + float(proof.busiest) * nbytes * beta_s
            else:
                crossing = crossing_part(schedule, hosts) if collective.carries_data else 0
                times[algorithm.name] = proof.rounds * far_alpha_s + float(crossing) * nbytes * far_beta_s
    return min(times, key=lambda name: times[name]) if times else None


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
