"""The errors of reading and writing traces, in English and Chinese."""

from __future__ import annotations

from unisono.message import Template

# ---- files -------------------------------------------------------------------------------------------------------

NOT_WRITABLE = Template(
    "tracing.not_writable",
    "trace: {path} cannot be written: {reason}; choose another path",
    "trace：无法写入 {path}：{reason}；请换一个路径",
)
NO_SUCH_TRACE = Template(
    "tracing.no_such_trace",
    "there is no file or folder {path!r}; expected a trace (unisono run --trace DIR ...)",
    "找不到文件或目录 {path!r}；应为跟踪记录（unisono run --trace DIR ...）",
)
NO_TRACE_IN_FOLDER = Template(
    "tracing.no_trace_in_folder",
    "{path}: there is no trace in this folder ({joined}, or the files of the ranks). "
    "To record one: unisono run -n 4 --trace DIR script.py",
    "{path}：该目录中没有跟踪记录（{joined}，或各 rank 的文件）。记录方法：unisono run -n 4 --trace DIR script.py",
)
SEVERAL_IN_FOLDER = Template(
    "tracing.several_in_folder",
    "{path}: there is no {joined} in this folder, but several other files; name one of them: {names}",
    "{path}：该目录中没有 {joined}，但有多个其他文件；请指定其中一个：{names}",
)
NOT_A_FILE = Template(
    "tracing.not_a_file",
    "{path}: a folder, a pipe or a device; expected a file with a trace (unisono run --trace DIR ...)",
    "{path}：这是目录、管道或设备；应为跟踪记录文件（unisono run --trace DIR ...）",
)
NOT_READABLE = Template(
    "tracing.not_readable",
    "{path}: cannot be read: {reason}; expected a readable trace",
    "{path}：无法读取：{reason}；应为可读的跟踪记录",
)
TOO_LARGE = Template(
    "tracing.too_large",
    "{path}: a trace of {size:.0f} MiB; expected {most:.0f} MiB or less. Record only the part of the run that you "
    'want to see (with comm.trace("run.json"):), or fewer events (comm.trace(..., events=10_000)). '
    "Perfetto opens larger files",
    "{path}：跟踪记录有 {size:.0f} MiB；应不超过 {most:.0f} MiB。请只记录需要的部分（with "
    'comm.trace("run.json"):），或减少事件数（comm.trace(..., events=10_000)）。Perfetto 可以打开更大的文件',
)

# ---- the trace as a whole ----------------------------------------------------------------------------------------

RANKS_MISSING = Template(
    "tracing.ranks_missing",
    "{path}: there is no trace of rank {ranks} of {size}; expected one of every rank. A rank that was killed leaves "
    "none. To read the others: read_run(..., missing_ok=True)",
    "{path}：没有 rank {ranks} 的跟踪记录（共 {size} 个 rank）；每个 rank 都应有跟踪记录。被强行终止的 rank "
    "不会留下跟踪记录。要读取其余 rank：read_run(..., missing_ok=True)",
)
TWO_TRACES = Template(
    "tracing.two_traces",
    "{path}: rank {rank} has two traces of the same communicator; expected one",
    "{path}：rank {rank} 在同一个通信器上有两份跟踪记录；应只有一份",
)
NOT_OURS = Template(
    "tracing.not_ours",
    "{path}: not a trace of Unisono; expected a file of `unisono run --trace DIR` or comm.trace()",
    "{path}：不是 Unisono 的跟踪记录；应为 `unisono run --trace DIR` 或 comm.trace() 写出的文件",
)
OTHER_FORMAT = Template(
    "tracing.other_format",
    "{path}: format {found}; this version of Unisono reads format {format}",
    "{path}：格式为 {found}；这个版本的 Unisono 只能读取格式 {format}",
)
TOO_MANY_RANKS = Template(
    "tracing.too_many_ranks",
    "{path}: a communicator of {size} ranks; expected at most {most}",
    "{path}：通信器有 {size} 个 rank；最多 {most} 个",
)
SEVERAL_RUNS = Template(
    "tracing.several_runs",
    "{path}: traces of {count} runs ({runs}); expected those of one. Record each run in a separate folder",
    "{path}：含有 {count} 次运行的跟踪记录（{runs}）；应只有一次。请把每次运行记录到单独的目录",
)
SEVERAL_CLOCKS = Template(
    "tracing.several_clocks",
    "{path}: the ranks had {count} different clocks (different machines, or containers with separate time "
    "namespaces); times of different clocks cannot be compared; hint: `unisono merge PARTS...` aligns the "
    "clocks of a job on several hosts",
    "{path}：各 rank 使用了 {count} 个不同的时钟（不同的机器，或时间命名空间不同的容器）；不同时钟的时间无法比较；"
    "建议：用 `unisono merge PARTS...` 对齐多台主机的时钟",
)
CLOCKS_UNKNOWN = Template(
    "tracing.clocks_unknown",
    "the parts of rank {ranks} cannot be joined with the others: they have another clock, whose offset could not be "
    "measured, because rank 0 did not answer. The parts are kept",
    "rank {ranks} 的跟踪记录无法与其他 rank 的合并：其时钟不同，且由于 rank 0 没有应答，未能测得时钟偏移。"
    "各 rank 的文件均已保留",
)
BAD_OFFSETS = Template(
    "tracing.bad_offsets",
    "{value} in a header is not a valid offset of a clock; record the trace again",
    "文件头中的 {value} 不是有效的时钟偏移；请重新记录",
)
OTHER_SIZE = Template(
    "tracing.other_size",
    "call {number} ({label}): {ranks} ranks recorded it, but its schedule is for {size} ranks",
    "第 {number} 次调用（{label}）：记录它的有 {ranks} 个 rank，但它的调度用于 {size} 个 rank",
)

# ---- damage ------------------------------------------------------------------------------------------------------

DAMAGED = Template(
    "tracing.damaged",
    "{path}: this trace is damaged: {damage}. Record it again",
    "{path}：跟踪记录已损坏：{damage}。请重新记录",
)
TOO_DEEP = Template(
    "tracing.too_deep", "its lists are nested deeper than in any trace", "列表嵌套过深，不可能是跟踪记录"
)
NOT_JSON = Template("tracing.not_json", "it is not JSON ({error})", "不是 JSON（{error}）")
NO_WHOLE_EVENT = Template(
    "tracing.no_whole_event", "line {line} is not a complete event ({error})", "第 {line} 行不是完整的事件（{error}）"
)
CUT_OFF = Template("tracing.cut_off", "it ends before its last event", "在最后一个事件之前就结束了")
NO_PARTS = Template("tracing.no_parts", "its header names no rank", "文件头没有列出任何 rank")
HEADER_WITHOUT = Template("tracing.header_without", "a header lacks {name}", "文件头缺少 {name}")
BAD_HEADER = Template("tracing.bad_header", "a header is invalid ({error})", "文件头无效（{error}）")
BAD_RANK = Template(
    "tracing.bad_rank",
    "a header says rank {rank} of {size}",
    "文件头中的 rank 编号 {rank} 超出范围（共 {size} 个 rank）",
)
EVENT_WITHOUT = Template("tracing.event_without", "event {number} lacks {name}", "第 {number} 个事件缺少 {name}")
BAD_EVENT = Template("tracing.bad_event", "event {number} is invalid ({error})", "第 {number} 个事件无效（{error}）")
SIZES_DIFFER = Template(
    "tracing.sizes_differ",
    "its headers disagree on the size of communicator {communicator}",
    "文件头中通信器 {communicator} 的 rank 数不一致",
)
RANK_TWICE = Template(
    "tracing.rank_twice",
    "one rank of communicator {communicator} has two traces",
    "通信器 {communicator} 中有一个 rank 有两份跟踪记录",
)

# ---- values ------------------------------------------------------------------------------------------------------

NOT_A_NUMBER = Template("tracing.not_a_number", "{value} instead of a number", "{value} 不是数")
NOT_A_NAME = Template("tracing.not_a_name", "{value} instead of a name", "{value} 不是名称")
NOT_A_TIME = Template("tracing.not_a_time", "{value} instead of a time in µs", "{value} 不是以 µs 为单位的时间")
NEGATIVE_LENGTH = Template("tracing.negative_length", "a duration of {value} µs", "时长为 {value} µs")
NOT_ARGUMENTS = Template("tracing.not_arguments", "{value} instead of arguments", "{value} 不是参数表")
NOT_CHUNKS = Template("tracing.not_chunks", "{value} instead of chunks", "{value} 不是块号列表")
NOT_A_REASON = Template("tracing.not_a_reason", "a wait for {value}", "等待的对象为 {value}")
NOT_A_RANK = Template(
    "tracing.not_a_rank", "rank {value} of {size}", "rank 编号 {value} 超出范围（共 {size} 个 rank）"
)
NOT_TEXT = Template("tracing.not_text", "{value} as {name}", "{name} 的值为 {value}")
