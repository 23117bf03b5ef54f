"""The messages of the command line, in English and Chinese: errors, and why something cannot be done."""

from unisono.message import Template

# arguments.py, main.py
NOT_SIZES = Template(
    "cli.not_sizes",
    "{text!r} is not a list of sizes; expected e.g. 8, 1-64 or 1-64,128",
    "{text!r} 不是 rank 数的列表；应写成 8、1-64 或 1-64,128",
)
NOT_A_SIZE = Template(
    "cli.not_a_size",
    "{text!r} is not a number of ranks; expected one number, 1 to {most}; hint: write digits only, such as 64",
    "{text!r} 不是 rank 数；应为 1 到 {most} 的整数；提示：只写数字，例如 64",
)
NOT_A_COUNT = Template(
    "cli.not_a_count",
    "{text!r} is not a count; expected one number, 1 to {most}; hint: write digits only, such as 64",
    "{text!r} 不是有效的数量；应为 1 到 {most} 的整数；提示：只写数字，例如 64",
)
NOT_A_DEPTH = Template(
    "cli.not_a_depth",
    "{text!r} is not a channel depth; expected a number, 1 or more, or unbounded",
    "{text!r} 不是有效的通道深度；应为不小于 1 的整数，或 unbounded（不限）",
)
NOT_AN_OPTION = Template(
    "cli.not_an_option",
    "--option {text}: expected name=value, such as --option node=4",
    "--option {text}：应写成“名称=值”，例如 --option node=4",
)
NO_VERB = Template(
    "cli.no_verb",
    "there is no verb {verb!r}; expected one of {verbs}",
    "没有名为 {verb!r} 的命令；应为 {verbs} 之一",
)
MEANT_VERB = Template(
    "cli.meant_verb",
    "there is no verb {verb!r}; did you mean {near!r}?",
    "没有名为 {verb!r} 的命令；是否想写 {near!r}？",
)
INTERNAL = Template(
    "cli.internal",
    "this is a bug in Unisono, please report it: {error} (line {line} of {file})",
    "这是 Unisono 的 bug，请反馈给我们：{error}（{file} 第 {line} 行）",
)
INTERRUPTED = Template("cli.interrupted", "interrupted", "已中断")

# list.py
LIST_TOO_LARGE = Template(
    "cli.list_too_large",
    "list -n {size}: the costs come from a proof of every algorithm, which takes minutes above {most} ranks; "
    "expected -n {most} or less, or one algorithm with `unisono verify NAME -n {size}`",
    "list -n {size}：代价要逐个证明算法才能得出，超过 {most} 个 rank 时需要数分钟；-n 应不大于 {most}，或用 "
    "`unisono verify 算法名 -n {size}` 只看一个算法",
)
SKIPPED = Template(
    "cli.skipped",
    "{algorithm}: skipped, it is not declared for {size} ranks",
    "{algorithm}：已跳过，它没有声明支持 {size} 个 rank",
)

# bench.py
NOT_SECONDS = Template(
    "cli.not_seconds",
    "--time-budget and --timeout are seconds; expected more than 0, at most an hour and a day",
    "--time-budget 和 --timeout 以秒为单位；应大于 0，且分别不超过一小时和一天",
)
NOT_A_QUANTILE = Template(
    "cli.not_a_quantile",
    "--quantile {value}: expected a number from 0 to 1",
    "--quantile {value}：应为 0 到 1 之间的数",
)
NO_CONTENDERS = Template(
    "cli.no_contenders",
    "--peers-only leaves nothing to measure; name other contenders with --against",
    "使用 --peers-only 后没有可测的对象；请用 --against 指定其他参测对象",
)
OTHER_COLLECTIVE = Template(
    "cli.other_collective",
    "{name}: {algorithm} is not an algorithm of {collective}",
    "{name}：{algorithm} 不是 {collective} 的算法",
)
NOT_DECLARED_FOR = Template(
    "cli.not_declared_for",
    "{name}: {algorithm} is not declared for {ranks}",
    "{name}：{algorithm} 没有声明支持 {ranks}",
)
WRONG_ELEMENTS = Template(
    "cli.wrong_elements",
    "{count} wrong elements: see the column `wrong`",
    "有 {count} 个错误的元素，见 `wrong` 一列",
)

NOT_A_RATE = Template(
    "cli.not_a_rate",
    "--rate {text}: expected bits or bytes per second, such as 10Gbit, 1.25GB or 1.25e9 (bytes)",
    "--rate {text}：应为每秒的比特数或字节数，例如 10Gbit、1.25GB 或 1.25e9（字节）",
)
BENCH_ON_HOSTS = Template("cli.bench_on_hosts", "{ranks} on {topology}", "{topology} 上的 {ranks}")
BENCH_ON_GPUS = Template("cli.bench_on_gpus", "{ranks}, {device} tensors", "{ranks}，{device} 张量")
MPS_NEEDS_CUDA = Template("cli.mps_needs_cuda", "--mps needs --device cuda", "--mps 需要与 --device cuda 一起使用")
DEVICE_AND_HOSTS = Template(
    "cli.device_and_hosts",
    "--device {device} is measured on this machine only; expected it without --hosts and --in-job",
    "--device {device} 只能在本机测量；不能与 --hosts 和 --in-job 一起使用",
)
BENCH_WITH_RATE = Template(
    "cli.bench_with_rate",
    "{ranks} on {topology}, links of {rate} Gbit/s",
    "{topology} 上的 {ranks}，链路 {rate} Gbit/s",
)
BENCH_WITH_MEASURED_RATE = Template(
    "cli.bench_with_measured_rate",
    "{ranks} on {topology}, slowest link measured at {rate} Gbit/s",
    "{topology} 上的 {ranks}，实测最慢链路为 {rate} Gbit/s",
)

# explain.py
EXPLAIN_TOO_LARGE = Template(
    "cli.explain_too_large",
    "explain --algorithm -n {size}: the algorithm is proved, which takes minutes above {most} ranks; "
    "expected -n {most} or less",
    "explain --algorithm -n {size}：需要证明该算法，超过 {most} 个 rank 时需要数分钟；-n 应不大于 {most}",
)
NOT_A_TOPOLOGY = Template(
    "cli.not_a_topology",
    "--topology {text}: expected hosts and their ranks, such as 2x4 or 3+1, the largest host first",
    "--topology {text}：应为主机及其 rank 数，例如 2x4 或 3+1，最大的主机在前",
)
TWO_SIZES = Template(
    "cli.two_sizes",
    "-n {size} and --topology {topology}: expected one of them; found {ranks} ranks in the topology; "
    "hint: leave -n out",
    "-n {size} 与 --topology {topology}：只能给出其中一个；该拓扑有 {ranks} 个 rank；提示：去掉 -n",
)
BUILT_IN_NETWORK = Template(
    "cli.built_in_network",
    "--built-in and --network: expected one of them; both state the rates of the network",
    "--built-in 与 --network：只能给出其中一个，二者都指定网络的速率",
)
EXPLAIN_TITLE = Template("cli.explain_title", "{collective}, {size} ranks", "{collective}，{size} 个 rank")
EXPLAIN_TITLE_OF_ONE = Template(
    "cli.explain_title_of_one", "{collective}, {size} rank", "{collective}，{size} 个 rank"
)
EXPLAIN_TITLE_ON_HOSTS = Template(
    "cli.explain_title_on_hosts",
    "{collective}, {size} ranks on {topology}",
    "{collective}，{size} 个 rank，主机分布 {topology}",
)
EXPLAINED = Template("cli.explained", "{size}: {algorithm}", "{size}：{algorithm}")
EXPLAINED_WITHOUT_BYTES = Template("cli.explained_without_bytes", "{algorithm}", "{algorithm}")
EXPLAINED_REASON = Template("cli.explained_reason", "reason: {reason}", "原因：{reason}")
EXPLAINED_COST = Template(
    "cli.explained_cost",
    "cost: steps {steps}, rounds {rounds}, bytes through the busiest rank {part} × the vector",
    "代价：{steps} 步，{rounds} 轮，最忙的 rank 的单向数据量（发送、接收取较大者）为整个向量的 {part} 倍",
)
EXPLAIN_TITLE_ON_NETWORK = Template(
    "cli.explain_title_on_network", "{title}, network {network}", "{title}，网络 {network}"
)
EXPLAINED_PREDICTION = Template("cli.explained_prediction", "prediction: {prediction}", "预测：{prediction}")
EXPLAINED_TAKEOVERS = Template("cli.explained_takeovers", "by size: {takeovers}", "按大小：{takeovers}")
EXPLAINED_NEXT = Template("cli.explained_next", "next best: {algorithm}", "次优：{algorithm}")
EXPLAINED_CHOICE = Template(
    "cli.explained_choice",
    "a call that names no algorithm uses {algorithm}",
    "不指定算法时选用：{algorithm}",
)

# tune.py
NOT_A_BUDGET = Template(
    "cli.not_a_budget",
    "--budget {value}: expected a number of seconds, more than 0",
    "--budget {value}：应为大于 0 的秒数",
)
NOTHING_TO_TUNE = Template(
    "cli.nothing_to_tune",
    "tune: with one rank there is nothing to select; expected -n 2 or more",
    "tune：只有一个 rank 时没有可供选择的算法；-n 应不小于 2",
)
STORED = Template("cli.stored", "stored in {path}", "已存入 {path}")
NOT_STORED = Template("cli.not_stored", "not stored (--dry-run)", "未存储（--dry-run）")
OWN_NOT_STORED = Template(
    "cli.own_not_stored",
    "Not stored: every later job on this machine reads the stored table, and would then run code from your file, "
    "which may have changed or moved. Use the algorithm where you want it: comm.all_reduce(x, algorithm={name!r}).",
    "未存储：此后本机上的每个作业都会读取存储的表，也就会运行你文件中的代码，而该文件可能已被修改或移走。"
    "请在需要的地方指定算法：comm.all_reduce(x, algorithm={name!r})。",
)

# info.py
NO_TABLE = Template(
    "cli.no_table",
    "predicted choices (`unisono tune` measures this machine)",
    "按预测选择（`unisono tune` 可测量本机）",
)
TABLE = Template("cli.table", "{path}, measured for {sizes} ranks", "{path}，已测量的 rank 数：{sizes}")
TRANSPORT = Template(
    "cli.transport",
    'shared memory inside a host, tcp between hosts (or ucx, with connect(transport="ucx"))',
    '主机内为共享内存，主机之间为 tcp（connect(transport="ucx") 则为 ucx）',
)
NO_UCX = Template(
    "cli.no_ucx", "not available (pip install unisono[net]): {reason}", "不可用（pip install unisono[net]）：{reason}"
)
TLS = Template(
    "cli.tls",
    "{openssl}, used with connect(tls=...); messages then go over tcp, because UCX does not encrypt",
    "{openssl}，用 connect(tls=...) 启用；此时由 tcp 传输消息，因为 UCX 不加密",
)
NO_TLS = Template("cli.no_tls", "not available: {reason}", "不可用：{reason}")
SHARED_MEMORY = Template(
    "cli.shared_memory",
    "{staging} MiB for each rank of a communicator (connect(staging_bytes=...)), and {transfer} KiB for each pair of "
    "ranks that uses send and recv; allocated on first use",
    "通信器的每个 rank 占 {staging} MiB（connect(staging_bytes=...)），每一对使用 send 和 recv 的 rank 占 "
    "{transfer} KiB；首次使用时分配",
)
ONE_HOST = Template(
    "cli.one_host",
    "--hosts {hosts}: one host has no links to other hosts; expected two hosts or more",
    "--hosts {hosts}：只有一台主机，没有到其他主机的链路；应为两台或更多",
)
LINKS_MEASURED = Template(
    "cli.links_measured",
    "round trip: the fastest of many exchanges of 8 bytes between one rank of each host; →: from the host on the "
    "left to the host on the right",
    "round trip：每台主机的一个 rank 之间往返 8 字节，取多次中最快的一次；→ 表示从左边的主机到右边的主机",
)
NO_ENGINE = Template("cli.no_engine", "not available: {error}", "不可用：{error}")

# demo_training.py
NO_TORCH = Template(
    "cli.no_torch", "torch is not installed (pip install torch)", "没有安装 torch（pip install torch）"
)
NO_EXAMPLE = Template(
    "cli.no_example",
    "there is no {example} here; it is in the source tree of Unisono",
    "找不到 {example}；它在 Unisono 的源码目录中",
)
TRAINING_TOO_LONG = Template(
    "cli.training_too_long", "the training did not finish within {seconds} s", "训练没有在 {seconds} 秒内完成"
)
TRAINING_FAILED = Template(
    "cli.training_failed", "the training ended with exit code {code}", "训练以退出码 {code} 结束"
)

# watchdog.py
RUNS_ON = Template("cli.runs_on", "{what} after {seconds} s", "{what}（已用 {seconds} 秒）")
ENDLESS_LOOP = Template("cli.endless_loop", "look for a loop that does not end", "请检查是否有不会结束的循环")

# on_hosts.py
HOSTS_AND_IN_JOB = Template(
    "cli.hosts_and_in_job",
    "--hosts and --in-job cannot be combined: --hosts starts a job, --in-job is for the ranks of a job",
    "--hosts 与 --in-job 不能同时使用：--hosts 用于启动作业，--in-job 用于作业中的 rank",
)
NEEDS_HOSTS = Template("cli.needs_hosts", "{option} needs --hosts", "{option} 需要与 --hosts 一起使用")
NOT_IN_JOB = Template(
    "cli.not_in_job",
    "--in-job: this process is not one of several ranks of a job; hint: start it with `unisono run`, torchrun, srun "
    "or mpirun, or use --hosts",
    "--in-job：这里不是多个 rank 组成的作业；建议：使用 `unisono run`、torchrun、srun、mpirun 或 --hosts",
)
ON_HOST = Template("cli.on_host", "rank {rank} on host {host}: {error}", "主机 {host} 上的 rank {rank}：{error}")
ON_HOST_OF_JOB = Template(
    "cli.on_host_of_job",
    "rank {rank} on host {host}, in a job whose rank 0 is at {address}: {error}",
    "主机 {host} 上的 rank {rank}（作业的 rank 0 位于 {address}）：{error}",
)

# gpu_facts.py
NO_GPUS = Template("cli.no_gpus", "none: {reason}", "无：{reason}")
NO_GPU_VISIBLE = Template(
    "cli.no_gpu_visible",
    "the driver shows no GPU to this process (CUDA_VISIBLE_DEVICES may hide GPUs)",
    "驱动程序未向本程序提供任何 GPU（CUDA_VISIBLE_DEVICES 可能隐藏了 GPU）",
)
GPU = Template(
    "cli.gpu",
    "{name}, {memory} GiB, compute capability {capability}, {multiprocessors} multiprocessors",
    "{name}，{memory} GiB，计算能力 {capability}，{multiprocessors} 个流式多处理器",
)
PEER_ACCESS = Template(
    "cli.peer_access", "every GPU can access the memory of every other", "每个 GPU 都能访问其他 GPU 的显存"
)
NO_PEER_ACCESS = Template(
    "cli.no_peer_access",
    "missing between {pairs}: ranks on these GPUs cannot exchange CUDA tensors directly",
    "{pairs} 之间没有：位于这些 GPU 上的 rank 不能直接交换 CUDA 张量",
)
MPS_ACTIVE = Template("cli.mps_active", "active", "已启用")
MPS_INACTIVE = Template("cli.mps_inactive", "not active", "未启用")
MPS_HOW_TO = Template(
    "cli.mps_how_to",
    "start it for one job with `unisono run --mps`, or for all programs with `{program} -d`",
    "用 `unisono run --mps` 为一个作业启动，或用 `{program} -d` 为所有程序启动",
)
MPS_NOT_INSTALLED = Template(
    "cli.mps_not_installed",
    "{program}, which starts it, is not on the PATH",
    "PATH 中没有用来启动它的 {program}",
)
GPU_MODE_KERNEL = Template(
    "cli.gpu_mode_kernel",
    "kernel, because MPS is active: one kernel per call, whether ranks share a GPU or have one each",
    "kernel，因为 MPS 已启用：无论多个 rank 共用一个 GPU，还是每个 rank 各有一个 GPU，每次调用都只需一个 kernel",
)
GPU_MODE_STREAM = Template(
    "cli.gpu_mode_stream",
    "stream for ranks that share a GPU, because without MPS the GPU gives each process a slice of time, and a kernel "
    "that waits for another rank would use up its slice; kernel for ranks with one GPU each",
    "多个 rank 共用一个 GPU 时为 stream，因为没有 MPS 时 GPU 按时间片轮流运行各程序，"
    "等待其他 rank 的 kernel 会耗尽自己的时间片；每个 rank 各有一个 GPU 时为 kernel",
)
