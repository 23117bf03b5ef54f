"""The messages of the communicator: errors of calls, arrays, algorithms, codecs and traces."""

from __future__ import annotations

from unisono.message import Template

# The names of the arrays of a call.
ARRAY_OF_CALL = Template("comm.array_of_call", "{call}: {name}", "{call}：{name}")
THE_ARRAY = Template("comm.the_array", "the array", "数组")
THE_INPUT = Template("comm.the_input", "the input", "输入")
THE_OUTPUT = Template("comm.the_output", "out", "输出 out")

# Arrays.
NOT_AN_ARRAY = Template(
    "comm.not_an_array",
    "{array} is a {kind}; expected a numpy array, a torch tensor or a CUDA array",
    "{array}的类型是 {kind}；应为 numpy 数组、torch 张量或 CUDA 数组",
)
NO_SUCH_DTYPE = Template(
    "comm.no_such_dtype",
    "{array} has dtype {dtype}; expected one of {known}",
    "{array}的 dtype 是 {dtype}；应为 {known} 之一",
)
MASKED_ARRAY = Template(
    "comm.masked_array",
    "{array} is a masked array, whose mask a call cannot respect; pass x.data or x.filled()",
    "{array}是掩码数组，调用无法处理其掩码；请传入 x.data 或 x.filled()",
)
NOT_CONTIGUOUS_ARRAY = Template(
    "comm.not_contiguous_array",
    "{array} is not contiguous (shape {shape}, strides {strides}); pass numpy.ascontiguousarray(x), and copy the "
    "result back if it is an output",
    "{array}不连续（形状 {shape}，步长 {strides}）；请传入 numpy.ascontiguousarray(x)，若为输出再把结果复制回来",
)
READ_ONLY_ARRAY = Template(
    "comm.read_only_array",
    "{array} is read-only; expected an array that can be written",
    "{array}是只读的；应为可写数组",
)
FOREIGN_BYTE_ORDER = Template(
    "comm.foreign_byte_order",
    "{array} has bytes in foreign order ({dtype}); convert it with x.astype(x.dtype.newbyteorder('='))",
    "{array}的字节序与本机不同（{dtype}）；请用 x.astype(x.dtype.newbyteorder('=')) 转换",
)
NOT_ON_CPU = Template(
    "comm.not_on_cpu",
    "{array} is on {device}; expected a tensor on the CPU or on a CUDA device",
    "{array}位于 {device}；应为 CPU 或 CUDA 设备上的张量",
)
NOT_CONTIGUOUS_TENSOR = Template(
    "comm.not_contiguous_tensor",
    "{array} is not contiguous (shape {shape}, strides {strides}); pass x.contiguous()",
    "{array}不连续（形状 {shape}，步长 {strides}）；请传入 x.contiguous()",
)
LAZY_VIEW = Template(
    "comm.lazy_view",
    "{array} is a view with the {bit} bit set, whose memory does not hold its values; pass "
    "y = x.resolve_conj().resolve_neg() and copy the result back with x.copy_(y)",
    "{array}是带有 {bit} 标志的视图，内存中并不是它的值；请传入 "
    "y = x.resolve_conj().resolve_neg()，再用 x.copy_(y) 写回结果",
)

# The arguments of a call.
DTYPES_DIFFER = Template(
    "comm.dtypes_differ",
    "{call}: out is {output} and the input is {input}; expected the same dtype",
    "{call}：out 是 {output}，输入是 {input}；二者的 dtype 应相同",
)
ARRAYS_OVERLAP = Template(
    "comm.arrays_overlap",
    "{call}: out and the input overlap in memory; expected two separate arrays",
    "{call}：out 与输入的内存重叠；应为两个互不重叠的数组",
)
ARRAYS_OVERLAP_ELSEWHERE = Template(
    "comm.arrays_overlap_elsewhere",
    "{call}: out and the input overlap in memory; expected two separate arrays, or the input to be this rank's part "
    "of out",
    "{call}：out 与输入的内存重叠；应为两个互不重叠的数组，或者输入恰好是 out 中属于本 rank 的部分",
)
NOT_ON_THIS_RANK = Template(
    "comm.not_on_this_rank",
    "{call}: {name} is given on a rank that is not the root; expected None",
    "{call}：非根 rank 给出了{name}；应为 None",
)
ARRAY_MISSING = Template(
    "comm.array_missing",
    "{call}: {name} is missing; expected an array on this rank",
    "{call}：缺少{name}；本 rank 需要给出数组",
)
GIVE_BOTH_SIZES = Template(
    "comm.give_both_sizes",
    "{call}: give both in_sizes and out_sizes, or neither",
    "{call}：in_sizes 与 out_sizes 应同时给出，或都不给",
)
NOT_DIVISIBLE = Template(
    "comm.not_divisible",
    "{call}: {count} elements do not divide into {size} equal parts; give the sizes of the parts (in_sizes or "
    "out_sizes)",
    "{call}：{count} 个元素无法均分为 {size} 份；请用 in_sizes 或 out_sizes 给出各份的大小",
)
BAD_SIZES = Template(
    "comm.bad_sizes",
    "{call}: {name}={sizes}; expected {size} lengths, one for each rank, none negative",
    "{call}：{name}={sizes}；应为 {size} 个非负长度，每个 rank 一个",
)
WRONG_LENGTH = Template(
    "comm.wrong_length",
    "{call}: {name} has {length} elements; expected {expected}",
    "{call}：{name}有 {length} 个元素；应为 {expected} 个",
)
BAD_ROOT = Template(
    "comm.bad_root",
    "{call}: root={root}; expected a rank from 0 to {last}",
    "{call}：root={root}；应为 0 到 {last} 之间的 rank 编号",
)
BAD_TIMEOUT = Template(
    "comm.bad_timeout",
    "{call}: timeout={timeout}; expected seconds, more than 0",
    "{call}：timeout={timeout}；应为大于 0 的秒数",
)
BAD_EXPECTED = Template(
    "comm.bad_expected",
    "grow: expected={expected}; expected a number of processes, or None",
    "grow：expected={expected}；应为进程数或 None",
)
BAD_GROW_TIMEOUT = Template(
    "comm.bad_grow_timeout",
    "grow: timeout={timeout}; expected seconds, 0 or more",
    "grow：timeout={timeout}；应为不小于 0 的秒数",
)
BAD_ON_FAILURE = Template(
    "comm.bad_on_failure",
    'all_reduce: on_failure={on_failure}; expected "restore" or None',
    'all_reduce：on_failure={on_failure}；应为 "restore" 或 None',
)
RESTORE_ON_GPU = Template(
    "comm.restore_on_gpu",
    'all_reduce: on_failure="restore" for a CUDA array; expected an array on the CPU; keep a copy of it instead',
    'all_reduce：对 CUDA 数组使用了 on_failure="restore"；应为 CPU 上的数组。请自行保留该数组的副本',
)
BAD_DESTINATION = Template(
    "comm.bad_destination",
    "send: dst={peer} on rank {rank}; expected another rank from 0 to {last}",
    "send：rank {rank} 上 dst={peer}；应为 0 到 {last} 之间的另一个 rank",
)
BAD_SOURCE = Template(
    "comm.bad_source",
    "recv: src={peer} on rank {rank}; expected another rank from 0 to {last}, or None for any",
    "recv：rank {rank} 上 src={peer}；应为 0 到 {last} 之间的另一个 rank，或用 None 表示任意 rank",
)
BAD_TAG = Template(
    "comm.bad_tag",
    "{call}: tag={tag}; expected a number from 0 to {largest}",
    "{call}：tag={tag}；应为 0 到 {largest} 之间的整数",
)

# Algorithms.
ALGORITHM_OF_OTHER_COLLECTIVE = Template(
    "comm.algorithm_of_other_collective",
    "{call}: algorithm={algorithm} performs {other}; expected an algorithm of {call}",
    "{call}：algorithm={algorithm} 执行的是 {other}；应为 {call} 的算法",
)
NOT_AN_ALGORITHM = Template(
    "comm.not_an_algorithm",
    "{call}: algorithm={algorithm}; expected a name, an algorithm (@algorithm) or a schedule",
    "{call}：algorithm={algorithm}；应为名称、算法（@algorithm）或调度",
)
SCHEDULE_OF_OTHER_CALL = Template(
    "comm.schedule_of_other_call",
    "{call}: the schedule is for {found} on {found_size} ranks with root {found_root}; expected {call} on {size} "
    "ranks with root {root}",
    "{call}：该调度用于 {found_size} 个 rank、根为 {found_root} 的 {found}；应为 {size} 个 rank、根为 {root} 的 "
    "{call}",
)
NEEDS_EQUAL_BLOCKS = Template(
    "comm.needs_equal_blocks",
    "{algorithm} forwards blocks of other ranks and so needs blocks of equal length; leave in_sizes and out_sizes "
    "out, or choose another algorithm (pairwise)",
    "{algorithm} 会转发其他 rank 的块组，因此各块组的长度必须相同；请去掉 in_sizes 和 out_sizes，"
    "或改用其他算法（pairwise）",
)
ANY_SIZE = Template("comm.any_size", "all sizes", "任意大小")
SIZES_BELOW = Template("comm.sizes_below", "sizes below {end} bytes", "小于 {end} 字节")
SIZES_FROM = Template("comm.sizes_from", "sizes from {start} bytes", "不少于 {start} 字节")
SIZES_BETWEEN = Template("comm.sizes_between", "sizes from {start} to {last} bytes", "{start}～{last} 字节")
BEST_FROM = Template(
    "comm.best_from",
    "selected for {sizes} on {size} ranks ({origin})",
    "{size} 个 rank、{sizes}时选用（{origin}）",
)
BEST_NOT_ALLOWED = Template(
    "comm.best_not_allowed",
    "because {best}, the best with {size} ranks ({origin}), cannot be used here",
    "因为 {size} 个 rank 时的最佳算法 {best}（{origin}）在此不可用",
)
BEST_FROM_ON_HOSTS = Template(
    "comm.best_from_on_hosts",
    "selected for {sizes} on {size} ranks of several hosts, {topology} ({origin})",
    "{size} 个 rank 分布在多台主机（{topology}）上、{sizes}时选用（{origin}）",
)
BEST_NOT_ALLOWED_ON_HOSTS = Template(
    "comm.best_not_allowed_on_hosts",
    "because {best}, the best with {size} ranks of several hosts, {topology} ({origin}), cannot be used here",
    "因为 {size} 个 rank 分布在多台主机（{topology}）上时的最佳算法 {best}（{origin}）在此不可用",
)
MEASURED_ON_HOSTS = Template(
    "comm.measured_on_hosts", "measured by `unisono tune` on such hosts", "由 `unisono tune` 在同样分布的主机上测得"
)
MEASURED = Template("comm.measured", "measured by `unisono tune` on this machine", "由 `unisono tune` 在本机测得")
PREDICTED = Template("comm.predicted", "predicted for this network", "按当前网络预测")
PREDICTED_TIME = Template(
    "comm.predicted_time",
    "predicted to take {time} µs: latency {latency}, bandwidth {bandwidth}, reduction {reduction}",
    "预计用时 {time} µs：延迟 {latency}，带宽 {bandwidth}，归约 {reduction}",
)
EXPLANATION_WITH_TAKEOVERS = Template(
    "comm.explanation_with_takeovers", "{explanation}; by size: {takeovers}", "{explanation}；按大小：{takeovers}"
)
NEXT_BEST = Template("comm.next_best", "{algorithm}", "{algorithm}")
NEXT_BEST_BEHIND = Template(
    "comm.next_best_behind", "{algorithm}, predicted {percent} % slower", "{algorithm}，预计慢 {percent} %"
)
NEXT_BEST_FAR_BEHIND = Template(
    "comm.next_best_far_behind",
    "{algorithm}, predicted to take {times} times as long",
    "{algorithm}，预计用时为其 {times} 倍",
)
NEXT_BEST_EQUAL = Template(
    "comm.next_best_equal",
    "{algorithm}, predicted equally fast (within {percent} %)",
    "{algorithm}，预计同样快（相差不到 {percent} %）",
)
NEXT_BEST_PREDICTED_FASTER = Template(
    "comm.next_best_predicted_faster",
    "{algorithm}, predicted {percent} % faster, against the measurement",
    "{algorithm}，预测快 {percent} %，与实测不符",
)
NEXT_BEST_FASTER = Template(
    "comm.next_best_faster", "{algorithm}, predicted {percent} % faster", "{algorithm}，预计快 {percent} %"
)
NO_TAKEOVER = Template("comm.no_takeover", "the same algorithm for all sizes", "任意大小都用同一算法")
TAKEOVER = Template("comm.takeover", "{algorithm} from {start} bytes", "{start} 字节起用 {algorithm}")
TAKEOVERS = Template("comm.takeovers", "{first} for short vectors, {others}", "短向量用 {first}，{others}")
MACHINE_EXPECTED = Template(
    "comm.machine_expected",
    'expected {{"rates": {{...}}}} with the rates of this machine, found something else',
    '应为含本机速率的 {{"rates": {{...}}}}，实际不是',
)
EXPLANATION = Template(
    "comm.explanation",
    "{collective} of {nbytes} bytes on {size} ranks: {algorithm}, {reason}",
    "{size} 个 rank 上 {nbytes} 字节的 {collective}：{algorithm}，{reason}",
)
EXPLANATION_WITHOUT_BYTES = Template(
    "comm.explanation_without_bytes",
    "{collective} on {size} ranks: {algorithm}, {reason}",
    "{size} 个 rank 上的 {collective}：{algorithm}，{reason}",
)
EXPLANATION_WITH_NEXT = Template(
    "comm.explanation_with_next", "{explanation}; next best: {next_best}", "{explanation}；次优：{next_best}"
)
EXPLANATION_WITH_CHOICE = Template(
    "comm.explanation_with_choice",
    "{explanation}; a call that names no algorithm uses {next_best}",
    "{explanation}；不指定算法时选用：{next_best}",
)

# The table of measured algorithms.
TABLE_NOT_STORED = Template(
    "comm.table_not_stored",
    "the table of algorithms cannot be stored in {path}: {reason}",
    "算法表无法写入 {path}：{reason}",
)
TABLE_HINT = Template(
    "comm.table_hint",
    "algorithms are chosen without it; run `unisono tune` again, or delete the file",
    "选择算法时不使用它；请重新运行 `unisono tune`，或删除该文件",
)
TABLE_FIELD = Template(
    "comm.table_field", "{field}: expected {expected}, found {found}", "{field}：应为 {expected}，实际为 {found}"
)
TABLE_EXPECTED = Template(
    "comm.table_expected", "expected {expected}, found {found}", "应为 {expected}，实际为 {found}"
)
A_COLLECTIVE_NAME = Template("comm.a_collective_name", "the name of a collective", "集合通信操作的名称")
RULES_BY_RANKS = Template("comm.rules_by_ranks", "rules for each number of ranks", "每种 rank 数的规则")
A_TOPOLOGY = Template(
    "comm.a_topology", "a number of ranks, or hosts such as 2x4 or 3+1", "rank 数，或 2x4、3+1 这样的主机分布"
)
OPTIONS_OF = Template("comm.options_of", "options of {algorithm}", "{algorithm} 的选项")
A_LIST_OF_RULES = Template("comm.a_list_of_rules", "a list of rules", "规则列表")
A_RULE = Template(
    "comm.a_rule", "[bytes, algorithm] or [bytes, algorithm, options]", "[字节数, 算法] 或 [字节数, 算法, 选项]"
)
ZERO_FIRST = Template("comm.zero_first", "0, as the first rule", "0，因为这是第一条规则")
BYTES_ABOVE = Template("comm.bytes_above", "a number of bytes above {least}", "大于 {least} 的字节数")
AN_ALGORITHM_FOR = Template(
    "comm.an_algorithm_for",
    "an algorithm of {collective} for {size} ranks",
    "适用于 {size} 个 rank 的 {collective} 算法",
)
TABLE_SIZES = Template("comm.table_sizes", "{collective}, {size} ranks", "{collective}，{size} 个 rank")
TABLE_RULE = Template(
    "comm.table_rule", "{collective}, {size} ranks, rule {rule}", "{collective}，{size} 个 rank，第 {rule} 条规则"
)

# Codecs.
IN_CALL = Template("comm.in_call", "{call}: {problem}", "{call}：{problem}")
CODEC_DTYPE = Template(
    "comm.codec_dtype",
    "{call}: codec={codec} with an array of {dtype}; codecs are for {encoded}. Convert the array, or leave the codec "
    "out",
    "{call}：codec={codec} 用于 {dtype} 数组；编解码器只支持 {encoded}。请转换数组，或不使用编解码器",
)
TOPK_ALL_REDUCE_ONLY = Template(
    "comm.topk_all_reduce_only",
    "{call}: codec={codec} is for all_reduce only; choose another codec, such as fp8_e4m3",
    "{call}：codec={codec} 只用于 all_reduce；请选择其他编解码器，例如 fp8_e4m3",
)
TOPK_HAS_NO_ALGORITHM = Template(
    "comm.topk_has_no_algorithm",
    "all_reduce: algorithm={algorithm} with codec={codec}, which is an all-gather of pieces; leave the algorithm out",
    "all_reduce：codec={codec} 实际执行的是各 rank 片段的 all-gather，不能指定 algorithm={algorithm}；请去掉该参数",
)
OTHER_ALGORITHMS_AGREE = Template(
    "comm.other_algorithms_agree",
    "call it without a codec, or with another algorithm: {algorithms}",
    "请不使用编解码器，或改用其他算法：{algorithms}",
)

# Work, traces and communicators.
NOT_FINISHED = Template(
    "comm.not_finished",
    "{call} has not finished after {seconds} s and is still running; wait again or close(){note}",
    "{call} 在 {seconds} 秒后尚未完成，仍在运行；请再次等待，或调用 close(){note}",
)
BAD_EVENT_COUNT = Template(
    "comm.bad_event_count",
    "trace: events={events}; expected a number from 1 to {most}",
    "trace：events={events}；应为 1 到 {most} 之间的整数",
)
TRACE_PATH_IS_FOLDER = Template(
    "comm.trace_path_is_folder",
    "trace: {path} is a folder; expected the name of a file, such as run.json",
    "trace：{path} 是目录；应为文件名，例如 run.json",
)
NO_TRACE_FOLDER = Template(
    "comm.no_trace_folder", "trace: there is no folder {path}; create it first", "trace：找不到目录 {path}；请先创建"
)
TRACE_ENTERED_TWICE = Template(
    "comm.trace_entered_twice",
    "trace: this block was entered before; comm.trace() returns a new one",
    "trace：该代码块已经进入过；请重新调用 comm.trace()",
)
TRACE_NOT_PICKLED = Template(
    "comm.trace_not_pickled",
    "a trace cannot be sent to another process; call comm.trace() there",
    "comm.trace() 的结果不能发送到其他进程；请在那里调用 comm.trace()",
)
COMMUNICATOR_NOT_PICKLED = Template(
    "comm.communicator_not_pickled",
    "a communicator cannot be sent to another process; connect() there",
    "通信器不能发送到其他进程；请在那里调用 connect()",
)
BAD_RATE = Template(
    "comm.bad_rate",
    "limit_rate: {rate}; expected bytes per second, more than 0, or None",
    "limit_rate：{rate}；应为大于 0 的每秒字节数，或 None",
)
