"""The messages of the benchmark, in English and Chinese."""

from unisono.message import Template

# cases.py
NO_DATA = Template(
    "bench.no_data",
    "{collective} moves no data; there is nothing to measure per byte",
    "{collective} 不传输数据，无法按字节测量",
)
NO_TYPE = Template(
    "bench.no_type",
    "there is no type {dtype!r}; expected one of {known}",
    "没有名为 {dtype!r} 的数据类型；应为 {known} 之一",
)
NO_REDUCTION = Template(
    "bench.no_reduction",
    "there is no reduction {op!r}; expected one of {known}",
    "没有名为 {op!r} 的归约运算；应为 {known} 之一",
)
NO_INTEGER_AVERAGE = Template(
    "bench.no_integer_average",
    "avg of {dtype} is not defined; expected a floating-point type",
    "{dtype} 不能求平均；应为浮点类型",
)
RANGE_BACKWARDS = Template(
    "bench.range_backwards",
    "--bytes {text}: {first} is more than {last}; expected from:to, such as 8:256MiB",
    "--bytes {text}：{first} 大于 {last}；应写成“起:止”，例如 8:256MiB",
)
NOT_BYTES = Template(
    "bench.not_bytes",
    "--bytes {whole}: {text!r} is not a number of bytes; expected e.g. 8, 1KiB, 64MiB, several separated by commas, "
    "or a range such as 8:256MiB",
    "--bytes {whole}：{text!r} 不是字节数；应写成 8、1KiB 或 64MiB，也可以用逗号分隔多个值，或写 8:256MiB 这样的范围",
)

# peers.py
NO_CONTENDER = Template(
    "bench.no_contender",
    "--against {name}: there is no contender {peer!r}; expected some of {known}",
    "--against {name}：没有名为 {peer!r} 的参测对象；应从 {known} 中选取",
)
MEANT_CONTENDER = Template(
    "bench.meant_contender",
    "--against {name}: there is no contender {peer!r}; did you mean {near}?",
    "--against {name}：没有名为 {peer!r} 的参测对象；是否想写 {near}？",
)
NO_SETTINGS = Template(
    "bench.no_settings",
    "--against {name}: {peer} has no settings to choose from",
    "--against {name}：{peer} 没有可供选择的配置",
)
NO_SETTING = Template(
    "bench.no_setting",
    "--against {name}: there is no such setting; expected one of {known}",
    "--against {name}：没有这种配置；应为 {known} 之一",
)
NO_TORCH = Template(
    "bench.no_torch",
    "--against torch: torch is not installed; install torch==2.13.0 in the environment of unisono",
    "--against torch：没有安装 torch；请在 Unisono 所在的环境中安装 torch==2.13.0",
)
NO_GLOO = Template(
    "bench.no_gloo",
    "--against gloo: torch, which contains Gloo, is not installed, and there is no {folder}/gloo; run `make peers` "
    "in the source tree to build it",
    "--against gloo：没有安装 torch（其中带有 Gloo），也找不到 {folder}/gloo；请在源码目录运行 `make peers` 来构建",
)
NO_PEER = Template(
    "bench.no_peer",
    "--against {name}: there is no {folder}/{name}; run `make peers` in the source tree to build it, or name its "
    "folder with --peers",
    "--against {name}：找不到 {folder}/{name}；请在源码目录运行 `make peers` 来构建，或用 --peers 指定它所在的目录",
)
NO_MPIEXEC = Template(
    "bench.no_mpiexec",
    "--against mpi: there is no mpiexec beside the interpreter or on the PATH; install Open MPI, MPICH or Intel MPI, "
    "or run `make peers` and name one of openmpi, mpich, impi",
    "--against mpi：Python 解释器所在目录和 PATH 中都找不到 mpiexec；请安装 Open MPI、MPICH 或 Intel MPI，或运行 "
    "`make peers` 后改用 openmpi、mpich、impi 之一",
)
NO_MPI4PY = Template(
    "bench.no_mpi4py",
    "--against mpi: found {mpiexec}, but no python3 on the PATH has mpi4py and numpy",
    "--against mpi：找到了 {mpiexec}，但 PATH 中没有装有 mpi4py 和 numpy 的 python3",
)
UNKNOWN_MPI = Template(
    "bench.unknown_mpi",
    "--against mpi: {mpiexec} is neither Open MPI nor MPICH nor Intel MPI; it prints {printed!r}",
    "--against mpi：{mpiexec} 不是 Open MPI、MPICH 或 Intel MPI；它的输出是 {printed!r}",
)

# contender_ranks.py: why a contender is dropped
RANKS_MISSING = Template(
    "bench.ranks_missing",
    "only {found} of {size} ranks connected within {seconds} s",
    "{seconds} 秒内只有 {found} 个 rank 建立了连接，应有 {size} 个",
)
ENDED_EARLY = Template(
    "bench.ended_early",
    "it exited with code {code} when {found} of {size} ranks had connected",
    "{size} 个 rank 中只有 {found} 个建立连接时，它就以退出码 {code} 结束了",
)
WRONG_RANK = Template(
    "bench.wrong_rank",
    "rank {rank} of {found} connected; expected each rank of {size} once",
    "建立连接的是“{found} 个 rank 中的 rank {rank}”；应由 {size} 个 rank 各连接一次",
)
RANK_GONE = Template("bench.rank_gone", "rank {rank} is gone ({error})", "rank {rank} 已不存在（{error}）")
RANK_ERROR = Template("bench.rank_error", "rank {rank}: {error}", "rank {rank}：{error}")
NO_ANSWER = Template("bench.no_answer", "rank {ranks} did not answer in time", "rank {ranks} 没有及时应答")
CLOSED = Template("bench.closed", "rank {rank} closed its connection", "rank {rank} 断开了连接")
CLOSED_EARLY = Template(
    "bench.closed_early",
    "a rank closed its connection before it had said which one it is",
    "有一个 rank 在报告自己的编号之前就断开了连接",
)

# plot.py
PLOT_KIND = Template(
    "bench.plot_kind", "--plot {path}: expected a name that ends in {kinds}", "--plot {path}：文件名应以 {kinds} 结尾"
)
NO_FOLDER = Template(
    "bench.no_folder", "--plot {path}: there is no folder {folder}", "--plot {path}：找不到目录 {folder}"
)
NO_MATPLOTLIB = Template(
    "bench.no_matplotlib",
    "--plot needs matplotlib, which is not installed; install it with `pip install unisono[plot]`",
    "--plot 需要 matplotlib，但尚未安装；请运行 `pip install unisono[plot]`",
)

# job_ranks.py
NOT_ON_HOSTS = Template(
    "bench.not_on_hosts",
    "--against {name} does not work on several hosts; expected gloo, unisono or unisono:ALGORITHM",
    "--against {name} 不支持多台主机；应为 gloo、unisono 或 unisono:算法名",
)
NO_TORCH_ON_HOST = Template(
    "bench.no_torch_on_host",
    "gloo needs torch, which is not installed on host {host}",
    "gloo 需要 torch，但主机 {host} 上没有安装",
)

# --device
NOT_ON_GPUS = Template(
    "bench.not_on_gpus",
    "--against {name}: not measured with --device {device}; expected some of {known}",
    "--against {name}：不支持与 --device {device} 一起测量；应从 {known} 中选取",
)
