"""The messages of ``unisono simulate``, in English and Chinese."""

from unisono.message import Template

TITLE = Template(
    "cli.simulate_title",
    "{collective}, {size} ranks, {bytes}, on {network}: {title}",
    "{collective}，{size} 个 rank，{bytes}，网络 {network}：{title}",
)
OTHER_COLLECTIVE = Template(
    "cli.simulate_other_collective",
    "{name} is an algorithm for {found}\n  expected: an algorithm for {expected}, like the ones before it\n"
    "  hint:     compare algorithms for one collective at a time",
    "{name} 是 {found} 的算法\n  应为：{expected} 的算法，与前面的算法一致\n  建议：每次只比较一种集合通信操作的算法",
)
SIZE_OF_SCHEDULE = Template(
    "cli.simulate_size_of_schedule",
    "{name} is a schedule of {found} ranks\n  expected: -n {found}\n  found:    -n {size}",
    "{name} 是 {found} 个 rank 的调度\n  应为：-n {found}\n  实际：-n {size}",
)
SIMULATING = Template(
    "cli.simulating",
    "simulating {algorithm}, {bytes}: {done} instructions",
    "正在模拟 {algorithm}，{bytes}：{done} 条指令",
)
TIME = Template("cli.simulate_time", "time", "时间")
OF_BEST = Template("cli.simulate_of_best", "of best", "相对最快")
LATENCY = Template("cli.simulate_latency", "latency", "延迟")
BANDWIDTH = Template("cli.simulate_bandwidth", "bandwidth", "带宽")
OVERHEAD = Template("cli.simulate_overhead", "overhead", "开销")
REDUCTION = Template("cli.simulate_reduction", "reduction", "归约")
WAITING = Template("cli.simulate_waiting", "waiting", "等待")
IDLE = Template("cli.simulate_idle", "idle", "空闲")
OF_BOUND = Template("cli.simulate_of_bound", "of bound", "相对下界")
BUSIEST = Template("cli.simulate_busiest", "busiest link", "最忙的链路")
PATH_NOTE = Template(
    "cli.simulate_path_note",
    "latency to waiting: the parts of the critical path; overhead includes copies, and waiting includes links that "
    "messages share. idle: the part of the time for which a processor waits, on average. of bound: the time divided "
    "by the larger of the two lower bounds of this network.",
    "“延迟”到“等待”：关键路径的组成；“开销”包括拷贝，“等待”包括消息共享链路所花的时间。“空闲”：处理器平均等待的时间"
    "占比。“相对下界”：时间与该网络两个下界中较大者之比。",
)
METHOD = Template(
    "cli.simulate_method",
    "{algorithm}: simulated, {method}; {messages} messages; segments of a chunk: {passes}; {contention}",
    "{algorithm}：模拟方式：{method}；{messages} 条消息；每块 {passes} 段；{contention}",
)
SHARED = Template("cli.simulate_shared", "links are shared", "消息共享链路的带宽")
NOT_SHARED = Template("cli.simulate_not_shared", "no links are shared", "消息不共享链路")
IGNORED = Template(
    "cli.simulate_contention_ignored",
    "contention ignored: messages that meet on a link do not slow each other down",
    "忽略争用：在同一链路上相遇的消息互不影响",
)
OUTPUT_WITHOUT_DRAW = Template(
    "cli.simulate_output_without_draw",
    "-o and --no-open apply to a page\n  expected: --draw as well",
    "-o 和 --no-open 用于页面\n  应为：同时使用 --draw",
)
