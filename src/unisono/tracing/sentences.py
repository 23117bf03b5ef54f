"""The sentences about a recorded run, in English and Chinese.

Each sentence is defined once, here. ``narration`` uses them for the terminal; the page of a run receives those in
``FOR_THE_PAGE`` as data and fills in the parameters itself (drawing/page/run/event_sentences.mjs).
"""

from __future__ import annotations

from unisono.message import CHINESE, ENGLISH, Message, Template, translated

# ---- what an op does ---------------------------------------------------------------------------------------------

KINDS = {
    "send": Template("tracing.kind_send", "send", "发送"),
    "receive": Template("tracing.kind_receive", "receive", "接收"),
    "reduce": Template("tracing.kind_reduce", "receive and add", "接收并相加"),
    "copy": Template("tracing.kind_copy", "copy", "复制"),
    "combine": Template("tracing.kind_combine", "add", "相加"),
    "results": Template("tracing.kind_results", "divide or round the results", "对结果做除法或舍入"),
}
FROM = Template("tracing.from", "{work} from {ranks}", "从 {ranks} {work}")
TO = Template("tracing.to", "{work} to {ranks}", "{work}，发往 {ranks}")
WORK = Template("tracing.work", "rank {rank}: {work} ({time})", "rank {rank}：{work}（{time}）")

# ---- the critical path -------------------------------------------------------------------------------------------

BEGIN = Template(
    "tracing.begin",
    "rank {rank} enters {late} after the first rank; its first op starts {time} later",
    "rank {rank} 比最先进入的 rank 晚 {late} 进入调用；{time} 后开始第一个动作",
)
TRANSIT = Template(
    "tracing.transit", "rank {rank} notices the message after {time}", "{time} 后，rank {rank} 发现消息已到达"
)
ROOM = Template(
    "tracing.room", "rank {rank} notices the free space after {time}", "{time} 后，rank {rank} 发现有了空位"
)
ENTRY = Template(
    "tracing.entry",
    "rank {rank} notices after {time} that all ranks have entered",
    "{time} 后，rank {rank} 发现所有 rank 都已进入调用",
)
SHORTER = Template(
    "tracing.shorter", "and {count} shorter stretches ({time} in total)", "以及另外 {count} 段更短的时间（共 {time}）"
)
LONGEST_CALL = Template(
    "tracing.longest_call",
    "the longest call is call {number} ({label}, {count} {dtype}): {time}; its critical path:",
    "最长的是第 {number} 次调用（{label}，{count} {dtype}）：{time}；其关键路径：",
)

# ---- waits -------------------------------------------------------------------------------------------------------

WAITS = Template("tracing.waits", "waits and their causes:", "等待及其原因：")
PAIR = Template(
    "tracing.pair",
    "rank {rank} waited {direct} for rank {cause} directly, and {time} because of it",
    "rank {rank} 直接等待 rank {cause} 共 {direct}，因它而等待的总时间为 {time}",
)
PAIR_INDIRECT = Template(
    "tracing.pair_indirect",
    "rank {rank} never waited for rank {cause} directly, but {time} because of it",
    "rank {rank} 从未直接等待 rank {cause}，但因它而等待的总时间为 {time}",
)

# ---- the slow rank -----------------------------------------------------------------------------------------------

SLOW_RANK = Template("tracing.slow_rank", "rank {rank} was slow", "rank {rank} 较慢")
SLOW_RANK_COST = Template(
    "tracing.slow_rank_cost",
    "the others waited {time} for it in {calls} of {of_calls} calls",
    "{of_calls} 次调用中有 {calls} 次，其他 rank 要等它，共等了 {time}",
)
SLOW_RANK_WITH_COST = Template("tracing.slow_rank_with_cost", "{slow}: {cost}", "{slow}：{cost}")
LATE = Template(
    "tracing.late",
    "it entered its calls late: it spends longer between calls than the others do",
    "它进入调用较晚：两次调用之间花的时间比其他 rank 长",
)
SLOW_INSIDE = Template(
    "tracing.slow_inside",
    "it was slow inside its calls: check its core, its memory and its link",
    "它在调用内部较慢：请检查它的 CPU 核、内存和链路",
)
LATE_AND_SLOW = Template(
    "tracing.late_and_slow",
    "it entered its calls late ({late}) and was slow inside them ({inside})",
    "它进入调用较晚（{late}），在调用内部也较慢（{inside}）",
)
NO_SLOW_RANK = Template(
    "tracing.no_slow_rank", "no rank repeatedly held up the others", "没有哪个 rank 反复拖慢其他 rank"
)
NONE_SLOW = Template("tracing.none_slow", "No rank was slow", "没有较慢的 rank")
ONE_RANK = Template("tracing.one_rank", "One rank, which waits for no other", "只有一个 rank，无需等待其他 rank")
TOO_FEW_CALLS = Template(
    "tracing.too_few_calls", "Too few calls to tell whether a rank is slow", "调用太少，无法判断是否有 rank 较慢"
)

# ---- the run as a whole ------------------------------------------------------------------------------------------

OVERVIEW = Template("tracing.overview", "{ranks}, {calls} in {span}: {what}", "{ranks}，{span} 内 {calls}：{what}")
RANKS = Template("tracing.ranks", "{count} ranks", "{count} 个 rank")
RANKS_ONE = Template("tracing.ranks_one", "{count} rank", "{count} 个 rank")
RANKS_OF_JOB = Template("tracing.ranks_of_job", "{ranks} ({names} of the job)", "{ranks}（作业中的 {names}）")
CALLS = Template("tracing.calls", "{count} calls", "{count} 次调用")
CALLS_ONE = Template("tracing.calls_one", "{count} call", "{count} 次调用")
HOSTS = Template("tracing.hosts", "on {count} hosts: {hosts}", "位于 {count} 台主机：{hosts}")
RANKS_OF_HOST = Template("tracing.ranks_of_host", "{host} (ranks {ranks})", "{host}（rank {ranks}）")
RANK_OF_HOST = Template("tracing.rank_of_host", "{host} (rank {ranks})", "{host}（rank {ranks}）")
SENT_BYTES = Template(
    "tracing.sent_bytes",
    "the ranks sent {near} inside their hosts and {far} between hosts",
    "各 rank 在主机内发送了 {near}，在主机间发送了 {far}",
)
CLOCKS = Template(
    "tracing.clocks",
    "the clocks of the hosts differ from that of rank 0 by {time} at most after their alignment",
    "各主机的时钟已对齐，与 rank 0 的时钟最多相差 {time}",
)
NO_TRACE_OF = Template(
    "tracing.no_trace_of",
    "there is no trace of rank {ranks}: it ended before it wrote one",
    "没有 rank {ranks} 的跟踪记录：它还没写出跟踪记录就结束了",
)
EVENTS_DROPPED = Template(
    "tracing.events_dropped", "the oldest {count} events were dropped", "最早的 {count} 个事件已被丢弃"
)

FOR_THE_PAGE = {
    "from": FROM, "to": TO, "work": WORK, "begin": BEGIN, "transit": TRANSIT, "room": ROOM, "entry": ENTRY,
    "shorter": SHORTER, "pair": PAIR, "pairIndirect": PAIR_INDIRECT,
}  # fmt: skip


def page_data() -> dict[str, dict[str, dict[str, str]]]:
    """Return the templates of the page as plain data: ``sentences`` and ``kinds``, each by name and language."""
    tables = (("sentences", FOR_THE_PAGE), ("kinds", KINDS))
    return {
        name: {key: {ENGLISH: template.english, CHINESE: template.chinese} for key, template in table.items()}
        for name, table in tables
    }


def as_sentence(message: Message) -> dict[str, str]:
    """Return a message in both languages, with a capital letter and a full stop."""
    english = str(message)
    return {ENGLISH: f"{english[:1].upper()}{english[1:]}.", CHINESE: f"{translated(message, CHINESE)}。"}


def as_title(message: Message) -> dict[str, str]:
    """Return a message in both languages, with a capital letter."""
    english = str(message)
    return {ENGLISH: f"{english[:1].upper()}{english[1:]}", CHINESE: translated(message, CHINESE)}
