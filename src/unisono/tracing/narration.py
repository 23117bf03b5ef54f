"""Describes a recorded run in sentences, English and Chinese."""

from __future__ import annotations

from collections import Counter

from unisono.message import Message, listed, translated
from unisono.tracing import sentences
from unisono.tracing.critical_path import Stretch, critical_path
from unisono.tracing.run import Call, Run, TracedCommunicator
from unisono.tracing.stragglers import SlowRank, slow_rank
from unisono.tracing.waiting import blames, waited_ns

MOST_PAIRS = 8
MOST_STRETCHES = 12
INDENT = "  "
STRETCHES = {"transit": sentences.TRANSIT, "room": sentences.ROOM, "entry": sentences.ENTRY}


def duration(ns: float) -> str:
    """Format a time with a suitable unit: 41 ms, 3.2 µs. The page has the same format (common/units.mjs)."""
    for unit, length in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= 0.9995 * length:  # 999.6 µs is 1 ms
            return f"{ns / length:.3g} {unit}" if ns < 999.5 * length else f"{ns / length:.0f} {unit}"
    return f"{ns:.0f} ns"


def summary(run: Run, language: str = "en") -> str:
    """Return what the trace ``run`` shows, in a few lines for each communicator.

    ``language`` is ``en`` (default) or ``zh``.
    """
    blocks = []
    for group in run.communicators:
        lines = lines_about(group, named=len(run.communicators) > 1)
        blocks.append("\n".join(f"{indent}{translated(line, language)}" for indent, line in lines))
    return "\n\n".join(blocks)


def lines_about(group: TracedCommunicator, named: bool = True) -> list[tuple[str, Message]]:
    """Return the lines on one communicator, each with its indent; ``named`` lists its ranks."""
    about = [("", line) for line in (overview(group, named), *hosts_of(group), *absent(group))]
    return about if group.size == 1 else [*about, *_slowness(group), *_pairs(group), *_longest(group)]


def overview(group: TracedCommunicator, named: bool) -> Message:
    """Describe how many ranks there were, and what they did."""
    labels = Counter(call.label for call in group.calls)
    what = [f"{count} × {label}" for label, count in labels.most_common(5)]
    if len(labels) > 5:
        what.append("...")
    sends = sum(transfer.sending for transfer in group.transfers)
    if sends:
        what.append(f"{sends} × send")
    begun, ended = [call.begin_ns for call in group.calls], [call.end_ns for call in group.calls]
    ranks = (sentences.RANKS_ONE if group.size == 1 else sentences.RANKS)(count=group.size)
    if named:
        ranks = sentences.RANKS_OF_JOB(ranks=ranks, names=listed(map(group.number, sorted(group.job_ranks))))
    count = len(group.calls)
    return sentences.OVERVIEW(
        ranks=ranks,
        calls=(sentences.CALLS_ONE if count == 1 else sentences.CALLS)(count=count),
        span=duration(max(ended) - min(begun)) if ended else "-",
        what=listed(what),
    )


def hosts_of(group: TracedCommunicator) -> list[Message]:
    """Describe the hosts of a communicator that has several: their ranks, bytes and clocks."""
    hosts = group.hosts
    if hosts is None or len(hosts.names) == 1:
        return []
    ranks = []
    for number, name in enumerate(hosts.names):
        here = [group.number(rank) for rank in hosts.ranks_on(number)]
        template = sentences.RANK_OF_HOST if len(here) == 1 else sentences.RANKS_OF_HOST
        ranks.append(template(host=name, ranks=listed(here)))
    near, far = group.sent_bytes()
    lines = [
        sentences.HOSTS(count=len(ranks), hosts=listed(ranks)),
        sentences.SENT_BYTES(near=size(near), far=size(far)),
    ]
    uncertainty_ns = max(group.uncertainties_ns.values(), default=0)
    if uncertainty_ns:
        lines.append(sentences.CLOCKS(time=duration(uncertainty_ns)))
    return lines


def size(count: float) -> str:
    """Format a number of bytes with a suitable unit: 41 MB, 3.2 kB."""
    for unit, length in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= 0.9995 * length:
            return f"{count / length:.3g} {unit}" if count < 999.5 * length else f"{count / length:.0f} {unit}"
    return f"{count:.0f} B"


def absent(group: TracedCommunicator) -> list[Message]:
    """Describe what is not in the trace."""
    lines = []
    if group.missing:
        lines.append(sentences.NO_TRACE_OF(ranks=listed(map(group.name, group.missing))))
    dropped = sum(group.dropped.values())
    if dropped:
        lines.append(sentences.EVENTS_DROPPED(count=dropped))
    return lines


def slow_rank_name(slow: SlowRank, group: TracedCommunicator) -> Message:
    """State which rank was slow."""
    return sentences.SLOW_RANK(rank=group.name(slow.rank))


def slow_rank_cost(slow: SlowRank) -> Message:
    """State how long the others waited for the slow rank."""
    return sentences.SLOW_RANK_COST(time=duration(slow.waited_ns), calls=slow.calls, of_calls=slow.of_calls)


def slow_rank_reason(slow: SlowRank) -> Message:
    """State why the others waited."""
    if slow.late_ns >= 3 * slow.slow_ns:
        return sentences.LATE()
    if slow.slow_ns >= 3 * slow.late_ns:
        return sentences.SLOW_INSIDE()
    return sentences.LATE_AND_SLOW(late=duration(slow.late_ns), inside=duration(slow.slow_ns))


def describe_stretch(stretch: Stretch, call: Call, group: TracedCommunicator) -> Message:
    """Describe a part of the critical path of a call."""
    rank, time = group.name(stretch.rank), duration(stretch.ns)
    if stretch.what == "begin":
        return sentences.BEGIN(rank=rank, late=duration(stretch.begin_ns - call.begin_ns), time=time)
    if stretch.what in STRETCHES:
        return STRETCHES[stretch.what](rank=rank, time=time)
    assert stretch.op is not None
    op = stretch.op
    work: str = sentences.KINDS[op.kind]() if op.kind in sentences.KINDS else op.kind
    if op.sources:
        work = sentences.FROM(work=work, ranks=listed(map(group.name, op.sources)))
    if op.to:
        work = sentences.TO(work=work, ranks=listed(map(group.name, op.to)))
    return sentences.WORK(rank=rank, work=work, time=time)


def _slowness(group: TracedCommunicator) -> list[tuple[str, Message]]:
    slow = slow_rank(group)
    if slow is None:
        return [("", sentences.NO_SLOW_RANK())]
    named = sentences.SLOW_RANK_WITH_COST(slow=slow_rank_name(slow, group), cost=slow_rank_cost(slow))
    return [("", named), ("", slow_rank_reason(slow))]


def _pairs(group: TracedCommunicator) -> list[tuple[str, Message]]:
    """List the pairs of a waiting rank and the cause of its waits, the longest waits first."""
    directly = waited_ns(group)
    causes: Counter[tuple[int, int]] = Counter()
    for blame in blames(group):
        causes[blame.waiter, blame.culprit] += blame.ns
    lines = []
    for (waiter, culprit), ns in causes.most_common(MOST_PAIRS):
        direct = directly.get((waiter, culprit), 0)
        names = {"rank": group.name(waiter), "cause": group.name(culprit), "time": duration(ns)}
        pair = sentences.PAIR(**names, direct=duration(direct)) if direct else sentences.PAIR_INDIRECT(**names)
        lines.append((INDENT, pair))
    return [("", sentences.WAITS()), *lines] if lines else []


def _longest(group: TracedCommunicator) -> list[tuple[str, Message]]:
    """Describe the critical path of the longest call."""
    calls = list(group.whole_calls())
    if not calls:
        return []
    call = max(calls, key=lambda candidate: candidate.ns)
    title = sentences.LONGEST_CALL(
        number=call.number, label=call.label, count=call.count, dtype=call.dtype, time=duration(call.ns)
    )
    return [("", title), *((INDENT, line) for line in _path_lines(critical_path(call), call, group))]


def _path_lines(path: list[Stretch], call: Call, group: TracedCommunicator) -> list[Message]:
    """Return the first stretch of a path and the longest others, in their order."""
    longest = sorted(range(1, len(path)), key=lambda at: -path[at].ns)[: MOST_STRETCHES - 1]
    shown = [path[at] for at in sorted([0, *longest])] if path else []
    lines = [describe_stretch(stretch, call, group) for stretch in shown]
    left = len(path) - len(shown)
    if left > 0:
        rest = sum(stretch.ns for stretch in path) - sum(stretch.ns for stretch in shown)
        lines.append(sentences.SHORTER(count=left, time=duration(rest)))
    return lines
