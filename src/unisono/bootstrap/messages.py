"""The sentences of the bootstrap, for users, in English and Chinese."""

from __future__ import annotations

from unisono.message import Template

# The environment variables of launchers (environment.py).
VARIABLES_MISSING = Template(
    "bootstrap.variables_missing",
    "the environment has {present} but not {missing}; expected all of the variables that {launcher} sets, or none",
    "环境变量中有 {present}，但缺少 {missing}；{launcher} 设置的变量应全部存在，或一个都不存在",
)
NOT_A_NUMBER = Template(
    "bootstrap.not_a_number",
    "the environment has {name}={text!r}; expected a whole number, 0 or more",
    "环境变量 {name}={text!r}；应为不小于 0 的整数",
)
RANK_TOO_LARGE = Template(
    "bootstrap.rank_too_large",
    "the environment has {name}={value} and {limit_name}={limit}; expected the first to be less than the second",
    "环境变量 {name}={value}，{limit_name}={limit}；前者应小于后者",
)
LOCAL_SIZE_TOO_LARGE = Template(
    "bootstrap.local_size_too_large",
    "the environment has {local_name}={local_size} and {name}={size}; expected no more ranks on this host than in "
    "the job",
    "环境变量 {local_name}={local_size}，{name}={size}；本机的 rank 数不应超过作业的 rank 数",
)
NO_JOB_NAME = Template(
    "bootstrap.no_job_name",
    "the environment has {name}={size} but not {job}; expected these as well, to identify the job",
    "环境变量中有 {name}={size}，但缺少 {job}；识别作业还需要这些变量",
)
NOT_TASKS = Template(
    "bootstrap.not_tasks",
    "the environment has SLURM_STEP_TASKS_PER_NODE={text!r} on node {node}; expected the tasks of each node, such as "
    "2(x3),1",
    "节点 {node} 上的环境变量 SLURM_STEP_TASKS_PER_NODE={text!r}；应为各节点的任务数，例如 2(x3),1",
)

# Uncaught errors of several ranks (error_report.py).
RANK = Template("bootstrap.rank", "rank {ranks} of {size}", "rank {ranks}（共 {size} 个）")
RANKS = Template("bootstrap.ranks", "ranks {ranks} of {size}", "rank {ranks}（共 {size} 个）")
ALL_RANKS = Template("bootstrap.all_ranks", "all {size} ranks", "全部 {size} 个 rank")
ERROR_ON = Template("bootstrap.error_on", "error on {ranks}:", "{ranks} 出错：")
INTERRUPTED_RANKS = Template("bootstrap.interrupted_ranks", "{ranks}: interrupted", "{ranks}：已中断")

# The rendezvous (rendezvous.py, rendezvous_server.py, handshake.py).
HINT_PORT = Template("bootstrap.hint_port", "give every job its own MASTER_PORT", "为每个作业指定不同的 MASTER_PORT")
HINT_INHERITED = Template(
    "bootstrap.hint_inherited",
    "one process may have inherited the environment of the other: only one of them can be a rank",
    "其中一个进程可能继承了另一个进程的环境变量：两者之中只能有一个作为 rank 加入",
)
HINT_STARTED = Template("bootstrap.hint_started", "check that rank {rank} was started", "检查 rank {rank} 是否已启动")
HINT_CONNECT_TIMEOUT = Template(
    "bootstrap.hint_connect_timeout",
    "give connect() a longer connect_timeout",
    "增大 connect() 的 connect_timeout",
)
HINT_OTHER_HOSTS = Template(
    "bootstrap.hint_other_hosts",
    "{hint}; the launcher does not state how many ranks are on this host: if some are elsewhere, call "
    'connect(rendezvous="HOST:PORT", token_file=PATH)',
    '{hint}；启动器没有说明本机有多少个 rank：如果有的 rank 在其他主机上，请调用 connect(rendezvous="HOST:PORT", '
    "token_file=PATH)",
)
NO_DESCRIPTOR = Template(
    "bootstrap.no_descriptor",
    "connect: rank {rank} has no file descriptor left ({reason}); hint: raise the limit (ulimit -n)",
    "connect：rank {rank} 没有可用的文件描述符（{reason}）；建议：提高上限（ulimit -n）",
)
CONNECT = Template("bootstrap.connect", "connect: {reason}", "connect：{reason}")
ERROR_ON_RANK = Template(
    "bootstrap.error_on_rank", "connect: rank {rank}: {reason}", "connect：rank {rank}：{reason}"
)
RANK_0_FAILED = Template(
    "bootstrap.rank_0_failed", "connect: rank {leader} failed: {reason}", "connect：rank {leader} 失败：{reason}"
)
OTHER_RANK_0_SILENT = Template(
    "bootstrap.other_rank_0_silent",
    "connect: another process is rank 0 of a job with the name {job!r} and does not answer; hint: {hint}",
    "connect：另一个进程已是作业 {job!r} 的 rank 0，但它没有应答；建议：{hint}",
)
OTHER_RANK_0 = Template(
    "bootstrap.other_rank_0",
    "connect: process {process} is rank 0 of a job with the name {job!r}, but so is process {other}, which is "
    "waiting "
    "for its ranks; hint: {hint}",
    "connect：进程 {process} 是作业 {job!r} 的 rank 0，但进程 {other} 也是 rank 0，并正在等待它的其他 rank；"
    "建议：{hint}",
)
ENDED_BEFORE_CONNECTED = Template(
    "bootstrap.ended_before_connected",
    "connect: rank {rank} (process {process}) ended before all ranks were connected",
    "connect：rank {rank}（进程 {process}）在所有 rank 建立连接之前就结束了",
)
ENDED_BEFORE_READY = Template(
    "bootstrap.ended_before_ready",
    "connect: rank {rank} (process {process}) ended before all ranks were ready",
    "connect：rank {rank}（进程 {process}）在所有 rank 就绪之前就结束了",
)
NOT_READY = Template(
    "bootstrap.not_ready",
    "connect: rank {rank} (process {process}) has not mapped the shared memory within {seconds:g} s",
    "connect：rank {rank}（进程 {process}）在 {seconds:g} 秒内没有完成共享内存的映射",
)
RANK_0_SILENT = Template(
    "bootstrap.rank_0_silent",
    "connect: rank {leader} (process {process}) has not answered within {seconds:g} s",
    "connect：rank {leader}（进程 {process}）在 {seconds:g} 秒内没有应答",
)
BAD_MESSAGE = Template(
    "bootstrap.bad_message",
    "connect: rank {rank} (process {process}): {reason}",
    "connect：rank {rank}（进程 {process}）：{reason}",
)
BAD_PAYLOAD = Template(
    "bootstrap.bad_payload",
    "connect: rank {leader} (process {process}) sent a payload with {parts}; expected the processes of all ranks and "
    "a config",
    "connect：rank {leader}（进程 {process}）发来的数据包含 {parts}；应为所有 rank 的 PID 和配置",
)
NO_RANK_0 = Template(
    "bootstrap.no_rank_0",
    "connect: rank {rank} timed out after {seconds:g} s waiting for rank {leader} of {size}; hint: {hint}",
    "connect：rank {rank}（共 {size} 个）等待 rank {leader}，{seconds:g} 秒后超时；建议：{hint}",
)
FOREIGN_SOCKET = Template(
    "bootstrap.foreign_socket",
    "connect: the socket of rank 0 belongs to user {user}; expected user {expected}",
    "connect：rank 0 的套接字属于用户 {user}；应属于用户 {expected}",
)
RANKS_MISSING = Template(
    "bootstrap.ranks_missing",
    "connect: timed out after {seconds:g} s; these ranks of {size} have not connected: {missing}{refused}; "
    "hint: check "
    "that they were started, or {hint}",
    "connect：{seconds:g} 秒后超时；{size} 个 rank 中，以下 rank 没有建立连接：{missing}{refused}；建议："
    "检查它们是否已启动，或{hint}",
)
REFUSALS = Template("bootstrap.refusals", " ({refusals})", "（{refusals}）")
PROCESS_REFUSED = Template(
    "bootstrap.process_refused", "process {process} was refused: {reason}", "进程 {process} 被拒绝：{reason}"
)
BAD_HELLO = Template(
    "bootstrap.bad_hello",
    "connect: rank 0 does not understand process {process}: {reason}",
    "connect：rank 0 无法解析进程 {process} 的消息：{reason}",
)
OTHER_VERSION = Template(
    "bootstrap.other_version",
    "connect: process {process} uses another version of Unisono than rank 0",
    "connect：进程 {process} 使用的 Unisono 版本与 rank 0 不同",
)
OTHER_SIZE = Template(
    "bootstrap.other_size",
    "connect: rank {rank} was started with size {theirs}, rank 0 with size {size}",
    "connect：rank {rank} 启动时的 rank 数为 {theirs}，而 rank 0 启动时为 {size}",
)
RANK_TWICE = Template(
    "bootstrap.rank_twice",
    "connect: rank {rank} connected twice, or is not in 0..{last}",
    "connect：rank {rank} 连接了两次，或其编号不在 0 到 {last} 之间",
)
OTHER_JOB = Template(
    "bootstrap.other_job",
    "connect: process {process} is not a rank of the job of process {other}, which has the same name ({job}){taken}"
    "{differences}; hint: {hint}",
    "connect：进程 {process} 不是进程 {other} 的作业中的 rank，但两者的作业名相同（{job}）{taken}{differences}；"
    "建议：{hint}",
)
RANK_TAKEN = Template(
    "bootstrap.rank_taken", " and whose rank {rank} is process {process}", "，其 rank {rank} 是进程 {process}"
)
JOBS_DIFFER = Template("bootstrap.jobs_differ", "; they differ in {differences}", "；两者的不同之处：{differences}")
SEVERAL_JOBS = Template(
    "bootstrap.several_jobs",
    "connect: several jobs have the same name ({job}), and rank 0 cannot decide which of these processes are its "
    "ranks: {processes}; hint: {hint}",
    "connect：多个作业同名（{job}），rank 0 无法判断下列进程中哪些属于它：{processes}；建议：{hint}",
)
PROCESS_AS_RANK = Template("bootstrap.process_as_rank", "{process} as rank {rank}", "{process}（rank {rank}）")
UNEXPECTED_DATA = Template(
    "bootstrap.unexpected_data",
    "connect: rank {rank} (process {process}) sent data before it was asked to",
    "connect：rank {rank}（进程 {process}）在收到请求之前发送了数据",
)

# The host of a rank (locality.py).
NO_BOOT_ID = Template(
    "bootstrap.no_boot_id", "cannot read the boot id of this host: {reason}", "无法读取本机的启动标识：{reason}"
)
OTHER_HOST = Template(
    "bootstrap.other_host",
    "rank 0 is on {host_0}, rank {rank} on {host}, and one of them has only a loopback address; hint: connect the "
    "hosts to a network, or start all ranks on one host",
    "rank 0 在 {host_0}，rank {rank} 在 {host}，其中一方只有回环地址；建议：将两台主机接入网络，"
    "或在同一台主机上启动所有 rank",
)
OTHER_NAMESPACE = Template(
    "bootstrap.other_namespace",
    "rank {rank} is in another {kind} namespace (container) than rank 0: {namespace} and {namespace_0}; hint: "
    "start all "
    "ranks in one container, or let the containers share the namespaces of the host (--network=host --pid=host)",
    "rank {rank} 与 rank 0 处于不同的 {kind} 命名空间（容器）：{namespace} 与 {namespace_0}；建议："
    "在同一个容器中启动所有 rank，或让各容器共享主机的命名空间（--network=host --pid=host）",
)
OTHER_USER = Template(
    "bootstrap.other_user",
    "rank 0 runs as user {user_0}, rank {rank} as user {user}; hint: start all ranks as one user",
    "rank 0 以用户 {user_0} 运行，rank {rank} 以用户 {user} 运行；建议：以同一用户启动所有 rank",
)

# The directory of a job (private_directory.py).
HINT_RUNTIME_DIR = Template(
    "bootstrap.hint_runtime_dir",
    "remove it, or set XDG_RUNTIME_DIR on every rank to a directory that only you can access",
    "将其删除，或在所有 rank 上把 XDG_RUNTIME_DIR 设为只有你能访问的目录",
)
NO_SUCH_DIRECTORY = Template(
    "bootstrap.no_such_directory",
    "there is no directory {path} for the ranks to meet in; hint: {hint}",
    "没有供 rank 会合的目录 {path}；建议：{hint}",
)
CANNOT_MAKE_DIRECTORY = Template(
    "bootstrap.cannot_make_directory",
    "cannot make the directory {path}: {reason}; hint: {hint}",
    "无法创建目录 {path}：{reason}；建议：{hint}",
)
NOT_A_PRIVATE_DIRECTORY = Template(
    "bootstrap.not_a_private_directory",
    "{path} is not private: expected a directory of user {user}: {reason}; hint: {hint}",
    "{path} 不是私有目录：应为用户 {user} 的目录，实际不是：{reason}；建议：{hint}",
)
DIRECTORY_NOT_PRIVATE = Template(
    "bootstrap.directory_not_private",
    "{path} is not private: expected a directory of user {user} with mode 0700, found user {owner} and mode {mode}; "
    "hint: {hint}",
    "{path} 不是私有目录：应属于用户 {user} 且权限为 0700，实际属于用户 {owner}，权限为 {mode}；建议：{hint}",
)

# Membership in a communicator (membership.py).
STAGING_TOO_SMALL = Template(
    "bootstrap.staging_too_small",
    "staging_bytes={staging_bytes}; expected at least {least}",
    "staging_bytes={staging_bytes}；至少应为 {least}",
)
COMMUNICATOR_CLOSED = Template(
    "bootstrap.communicator_closed",
    "{call}: this communicator is closed; connect() makes a new one",
    "{call}：该通信器已关闭；可用 connect() 建立新的通信器",
)
BAD_SPLIT = Template(
    "bootstrap.bad_split",
    "split: color={color}, key={key}; expected integers (or None as the color, for no group)",
    "split：color={color}，key={key}；应为整数（color 可为 None，表示不属于任何组）",
)
SHRINK_ON_SEVERAL_HOSTS = Template(
    "bootstrap.shrink_on_several_hosts",
    "shrink: this job is on several hosts ({hosts} in this communicator); expected all ranks on one host. Start the "
    "job again without the rank that was lost",
    "shrink：此作业位于多台主机上（该通信器中有 {hosts} 台）；所有 rank 应在同一台主机上。"
    "请去掉已丢失的 rank 后重新启动作业",
)
GROW_ON_SEVERAL_HOSTS = Template(
    "bootstrap.grow_on_several_hosts",
    "grow: this job is on several hosts ({hosts} in this communicator); expected all ranks on one host",
    "grow：此作业位于多台主机上（该通信器中有 {hosts} 台）；所有 rank 应在同一台主机上",
)
GROWTH_FAILED = Template(
    "bootstrap.growth_failed",
    "rank {rank}: grow failed on another rank; this communicator can still be used",
    "rank {rank}：grow 在另一个 rank 上失败；该通信器仍可使用",
)
NO_JOIN_ADDRESS = Template(
    "bootstrap.no_join_address",
    "rank {rank}: grow: all {most} addresses at which processes join this job are taken, by ranks that are stopped "
    "or were excluded; end them",
    "rank {rank}：grow：供进程加入此作业的 {most} 个地址均被占用，占用者是已暂停或已被排除的 rank；请结束它们",
)
BAD_JOIN_ADDRESS = Template(
    "bootstrap.bad_join_address",
    "join: address={address}; expected the join_address of a communicator of the job",
    "join：address={address}；应为该作业某个通信器的 join_address",
)
JOIN = Template("bootstrap.join", "join: {reason}", "join：{reason}")
NOT_ADMITTED = Template(
    "bootstrap.not_admitted",
    "join: timed out after {seconds} s: no rank of the job has admitted this process; every rank must call grow",
    "join：{seconds} 秒后超时：作业中没有 rank 接纳此进程；每个 rank 都必须调用 grow",
)
JOB_IS_ENDING = Template(
    "bootstrap.job_is_ending",
    "join: a rank of the job has ended well, so that this process is no longer needed",
    "join：作业中已有 rank 正常结束，不再需要此进程",
)
SHRINK_TOO_LARGE = Template(
    "bootstrap.shrink_too_large",
    "shrink: this communicator has {size} ranks; expected at most {most}",
    "shrink：该通信器有 {size} 个 rank；最多应为 {most} 个",
)
NO_MEMORY_FILE = Template(
    "bootstrap.no_memory_file",
    "connect: rank {rank} cannot create shared memory: {reason}; hint: raise the limits (ulimit -n)",
    "connect：rank {rank} 无法创建共享内存：{reason}；建议：提高上限（ulimit -n）",
)
NO_SHARED_MEMORY = Template(
    "bootstrap.no_shared_memory",
    "connect: no shared memory of {bytes} bytes: {reason}; hint: connect with a smaller staging_bytes, or raise the "
    "limit on file sizes (ulimit -f)",
    "connect：无法取得 {bytes} 字节共享内存：{reason}；建议：用更小的 staging_bytes 连接，"
    "或提高文件大小上限（ulimit -f）",
)
