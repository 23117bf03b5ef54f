"""What a trace shows, in sentences, English and Chinese."""

from __future__ import annotations

from collections import Counter

from unisono.collectives import Words
from unisono.tracing.critical_path import Stretch, critical_path
from unisono.tracing.run import Call, Run, TracedCommunicator
from unisono.tracing.stragglers import SlowRank, slow_rank
from unisono.tracing.waiting import blames, waited_ns

MOST_PAIRS = 8
MOST_STRETCHES = 12
KINDS = {
    "send": Words("send", "发送"),
    "receive": Words("receive", "接收"),
    "reduce": Words("receive and add", "接收并相加"),
    "copy": Words("copy", "复制"),
    "combine": Words("add", "相加"),
    "results": Words("divide or round the results", "对结果做除法或舍入"),
}


def duration(ns: float) -> str:
    """Write a time with a unit that fits: 41 ms, 3.2 µs."""
    for unit, length in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= 0.9995 * length:  # 999.6 µs are 1 ms
            return f"{ns / length:.3g} {unit}" if ns < 999.5 * length else f"{ns / length:.0f} {unit}"
    return f"{ns:.0f} ns"


def slow_rank_words(slow: SlowRank, group: TracedCommunicator) -> Words:
    """Say which rank was slow, and how much that cost."""
    who, how = slow_rank_name(slow, group), slow_rank_cost(slow)
    return Words(f"{who.en}: {how.en}", f"{who.zh}：{how.zh}")


def slow_rank_name(slow: SlowRank, group: TracedCommunicator) -> Words:
    """Say which rank was slow."""
    rank = group.name(slow.rank)
    return Words(f"rank {rank} was slow", f"进程 {rank} 较慢")


def slow_rank_cost(slow: SlowRank) -> Words:
    """Say how long the others waited for the slow rank."""
    waited = duration(slow.waited_ns)
    return Words(
        f"the others waited {waited} for it in {slow.calls} of {slow.of_calls} calls",
        f"在 {slow.of_calls} 次调用中的 {slow.calls} 次里，其他进程共等了它 {waited}",
    )


def reason_words(slow: SlowRank) -> Words:
    """Say what the others waited for."""
    if slow.late_ns >= 3 * slow.slow_ns:
        return Words(
            "it came late to its calls: what it does between them takes longer than on the others",
            "它进入调用较晚：它在两次调用之间所做的事比其他进程更久",
        )
    if slow.slow_ns >= 3 * slow.late_ns:
        return Words(
            "it was slow inside its calls: look at its core, its memory, its link",
            "它在调用之中较慢：请检查它的核心、内存和链路",
        )
    late, inside = duration(slow.late_ns), duration(slow.slow_ns)
    return Words(
        f"it came late to its calls ({late}) and was slow inside of them ({inside})",
        f"它进入调用较晚（{late}），在调用之中也较慢（{inside}）",
    )


def stretch_words(stretch: Stretch, call: Call, group: TracedCommunicator) -> Words:
    """Say what a part of the critical path of a call is."""
    rank, long = group.name(stretch.rank), duration(stretch.ns)
    if stretch.what == "begin":
        late = duration(stretch.begin_ns - call.begin_ns)
        return Words(
            f"rank {rank} comes {late} after the first ({long} until its first op)",
            f"进程 {rank} 比最先到的晚 {late} 开始（{long} 后做第一个操作）",
        )
    if stretch.what == "transit":
        return Words(f"until rank {rank} notices the message ({long})", f"到进程 {rank} 察觉消息为止（{long}）")
    if stretch.what == "room":
        return Words(
            f"until rank {rank} notices that there is room ({long})", f"到进程 {rank} 察觉有空位为止（{long}）"
        )
    if stretch.what == "entry":
        return Words(
            f"until rank {rank} notices that all have come ({long})",
            f"到进程 {rank} 察觉各进程都已到达为止（{long}）",
        )
    assert stretch.op is not None
    op = stretch.op
    sources, to = (", ".join(map(group.name, ranks)) for ranks in (op.sources, op.to))
    kind = KINDS.get(op.kind, Words(op.kind, op.kind))
    en = f"{kind.en}{f' from {sources}' if sources else ''}{f' to {to}' if to else ''}"
    zh = f"{kind.zh}{f'（来自 {sources}）' if sources else ''}{f'，送往 {to}' if to else ''}"
    return Words(f"rank {rank}: {en} ({long})", f"进程 {rank}：{zh}（{long}）")


def summary(run: Run, language: str = "en") -> str:
    """Return what a trace shows, in a few lines for each communicator."""
    blocks = []
    for group in run.communicators:
        lines = lines_about(group, named=len(run.communicators) > 1)
        blocks.append("\n".join(line.zh if language == "zh" else line.en for line in lines))
    return "\n\n".join(blocks)


def lines_about(group: TracedCommunicator, named: bool = True) -> list[Words]:
    """Return the lines on one communicator; ``named``: with its ranks, to tell it from others."""
    about = [overview(group, named), *absent(group)]
    return about if group.size == 1 else [*about, *_slowness(group), *_pairs(group), *_longest(group)]


def overview(group: TracedCommunicator, named: bool) -> Words:
    """Say how many ranks there were, and what they did."""
    labels = Counter(call.label for call in group.calls)
    what = ", ".join(f"{count} × {label}" for label, count in labels.most_common(5))
    what += ", ..." if len(labels) > 5 else ""
    sends = sum(one.sending for one in group.transfers)
    what += f"{', ' if what else ''}{sends} × send" if sends else ""
    begun, ended = [call.begin_ns for call in group.calls], [call.end_ns for call in group.calls]
    span = duration(max(ended) - min(begun)) if ended else "-"
    ranks = ", ".join(map(group.name, sorted(group.job_ranks))) if named else ""
    size, calls = group.size, len(group.calls)
    return Words(
        f"{size} rank{'s' * (size != 1)}{f' ({ranks} of the job)' if ranks else ''}, {calls} "
        f"call{'s' * (calls != 1)} in {span}: {what}",
        f"{size} 个进程{f'（作业中的 {ranks}）' if ranks else ''}，{span} 内 {calls} 次调用：{what}",
    )


def absent(group: TracedCommunicator) -> list[Words]:
    """Say what is not in the trace."""
    lines = []
    if group.missing:
        ranks = ", ".join(map(group.name, group.missing))
        lines.append(
            Words(
                f"there is no trace of rank {ranks}: it ended before it could write one",
                f"没有进程 {ranks} 的记录：它在写出记录之前就结束了",
            )
        )
    dropped = sum(group.dropped.values())
    if dropped:
        lines.append(Words(f"the oldest {dropped} events were dropped", f"最早的 {dropped} 个事件已被丢弃"))
    return lines


def _slowness(group: TracedCommunicator) -> list[Words]:
    slow = slow_rank(group)
    if slow is None:
        return [Words("no rank held the others up again and again", "没有哪个进程一再拖慢其他进程")]
    return [slow_rank_words(slow, group), reason_words(slow)]


def _pairs(group: TracedCommunicator) -> list[Words]:
    """Say who waited for whom, and because of whom: those that waited longest."""
    directly = waited_ns(group)
    causes: Counter[tuple[int, int]] = Counter()
    for blame in blames(group):
        causes[blame.waiter, blame.culprit] += blame.ns
    lines = []
    for (waiter, culprit), ns in causes.most_common(MOST_PAIRS):
        own = duration(directly.get((waiter, culprit), 0))
        who, cause = group.name(waiter), group.name(culprit)
        lines.append(
            Words(
                f"  rank {who} waited {own} for rank {cause}, and {duration(ns)} because of it",
                f"  进程 {who} 等待进程 {cause} 共 {own}，因它而等待 {duration(ns)}",
            )
        )
    return [Words("who waited for whom, and because of whom:", "谁等谁，又因谁而等："), *lines] if lines else []


def _longest(group: TracedCommunicator) -> list[Words]:
    """Say what the critical path of the longest call was."""
    calls = list(group.whole_calls())
    if not calls:
        return []
    call = max(calls, key=lambda one: one.ns)
    path = critical_path(call)
    return [_title(call), *(Words(f"  {one.en}", f"  {one.zh}") for one in _path_lines(path, call, group))]


def _title(call: Call) -> Words:
    about = f"{call.label}, {call.count} {call.dtype}"
    return Words(
        f"the longest call was number {call.number} ({about}): {duration(call.ns)}; its critical path:",
        f"最长的一次是第 {call.number} 次调用（{about}）：{duration(call.ns)}；其关键路径：",
    )


def _path_lines(path: list[Stretch], call: Call, group: TracedCommunicator) -> list[Words]:
    """Return the first stretch of a path and the longest others, in their order."""
    longest = sorted(range(1, len(path)), key=lambda at: -path[at].ns)[: MOST_STRETCHES - 1]
    shown = [path[at] for at in sorted([0, *longest])] if path else []
    lines = [stretch_words(stretch, call, group) for stretch in shown]
    left = len(path) - len(shown)
    if left > 0:
        rest = duration(sum(one.ns for one in path) - sum(one.ns for one in shown))
        lines.append(Words(f"and {left} shorter ones ({rest} together)", f"以及另外 {left} 段（共 {rest}）"))
    return lines
