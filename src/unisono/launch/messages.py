"""The sentences of the launcher, for users, in English and Chinese."""

from __future__ import annotations

from unisono.message import Template

# Elastic jobs (elastic.py).
BAD_ELASTIC = Template(
    "launch.bad_elastic",
    "run: --elastic {text}; expected the smallest and the largest number of ranks, such as 2:8",
    "run：--elastic {text}；应为最小和最大的 rank 数，例如 2:8",
)
ELASTIC_SIZE = Template(
    "launch.elastic_size",
    "run: -n {size} with --elastic {least}:{most}; expected a size between these limits",
    "run：-n {size} 与 --elastic {least}:{most}；大小应在这两个界限之间",
)
ELASTIC_AND_HOSTS = Template(
    "launch.elastic_and_hosts",
    "run: --elastic with --hosts; expected only one of them: elastic jobs run on one machine",
    "run：同时使用了 --elastic 和 --hosts；只能使用其中之一：弹性作业只在一台机器上运行",
)
ELASTIC_WITHOUT = Template(
    "launch.elastic_without",
    "run: --elastic with {option}; expected only one of them",
    "run：同时使用了 --elastic 和 {option}；只能使用其中之一",
)
ELASTIC_JOB = Template(
    "launch.elastic_job",
    "unisono: this is job {job}; `unisono resize {job} N` changes its size",
    "unisono：作业名为 {job}；可用 `unisono resize {job} N` 改变其大小",
)
RANK_STARTS_AGAIN = Template(
    "launch.rank_starts_again",
    "unisono: rank {rank} has failed (exit code {code}); it starts again in {seconds} s ({count} of {restarts})",
    "unisono：rank {rank} 失败（退出码 {code}）；将在 {seconds} 秒后重新启动（第 {count} 次，最多 {restarts} 次）",
)
RANK_LOST = Template(
    "launch.rank_lost",
    "unisono: rank {rank} has failed (exit code {code}) after {restarts} restarts; the job goes on without it",
    "unisono：rank {rank} 在重新启动 {restarts} 次后再次失败（退出码 {code}）；作业在没有它的情况下继续",
)
RESIZING = Template(
    "launch.resizing",
    "unisono: the job changes its size from {before} to {after}",
    "unisono：作业的大小由 {before} 变为 {after}",
)
NO_ELASTIC_JOB = Template(
    "launch.no_elastic_job",
    "resize: there is no elastic job {job} in {folder}; `unisono run --elastic` prints the name of its job",
    "resize：{folder} 中没有弹性作业 {job}；`unisono run --elastic` 会显示其作业名",
)
SIZE_OUT_OF_LIMITS = Template(
    "launch.size_out_of_limits",
    "resize: size {size} for job {job}; expected {least} to {most}",
    "resize：作业 {job} 的大小为 {size}；应在 {least} 到 {most} 之间",
)

NO_RANKS = Template(
    "launch.no_ranks",
    "{size} ranks; expected a whole number, 1 or more",
    "rank 数为 {size}；应为不小于 1 的整数",
)
TOO_MANY_RANKS = Template(
    "launch.too_many_ranks",
    "{size} ranks on {cores} cores; expected at most {limit} ({per_core} for each core), since every rank is a "
    "process on this machine; hint: {override} lifts the limit",
    "在 {cores} 个核上启动 {size} 个 rank；最多 {limit} 个（每核 {per_core} 个），因为每个 rank "
    "都是本机上的一个进程；建议：用 {override} 取消限制",
)
CANNOT_START = Template(
    "launch.cannot_start",
    "rank {rank}: cannot run {program!r}: {reason}{hint}",
    "rank {rank}：无法运行 {program!r}：{reason}{hint}",
)
RAISE_OPEN_FILES = Template(
    "launch.raise_open_files",
    "; hint: raise the limit on open files (ulimit -n)",
    "；建议：提高打开文件数上限（ulimit -n）",
)
RAISE_PROCESSES = Template(
    "launch.raise_processes",
    "; hint: start fewer ranks, or raise the limit on processes (ulimit -u)",
    "；建议：减少 rank 数，或提高进程数上限（ulimit -u）",
)
NO_HINT = Template("launch.no_hint", "", "")

# unisono run --hosts
BAD_HOSTS = Template(
    "launch.bad_hosts",
    "--hosts {text}: found {entry!r}; expected HOST or HOST:RANKS, separated by commas, such as a:4,b:4",
    "--hosts {text}：{entry!r} 无效；应为以逗号分隔的 主机 或 主机:rank数，例如 a:4,b:4",
)
HOST_TWICE = Template(
    "launch.host_twice",
    "--hosts {text}: {host} appears twice; hint: state all ranks of a host in one entry",
    "--hosts {text}：{host} 出现了两次；建议：把一台主机的全部 rank 写在同一项中",
)
CANNOT_START_AGENT = Template(
    "launch.cannot_start_agent",
    "host {host}: cannot run {program!r}: {reason}",
    "主机 {host}：无法运行 {program!r}：{reason}",
)
BAD_TASK = Template(
    "launch.bad_task",
    "unisono agent: the standard input does not begin with a task; `unisono run --hosts` starts agents",
    "unisono agent：标准输入的第一行不是代理的作业说明；代理由 `unisono run --hosts` 启动",
)
NO_DIRECTORY = Template(
    "launch.no_directory",
    "host {host}: cannot change to {path!r}: {reason}; every host needs the program at the same path",
    "主机 {host}：无法进入 {path!r}：{reason}；每台主机都需要在相同路径下有该程序",
)
HOST_LOST = Template(
    "launch.host_lost",
    "unisono run: the agent on host {host} ended without a report (code {code}); hint: check that `{command}` works",
    "unisono run：主机 {host} 上的代理未作报告即已结束（返回码 {code}）；建议：检查 `{command}` 能否运行",
)
HOSTS_AND_SIZE = Template(
    "launch.hosts_and_size",
    "-n {size} does not agree with --hosts, which has {ranks} ranks; hint: leave out -n",
    "-n {size} 与 --hosts 的 {ranks} 个 rank 不一致；建议：去掉 -n",
)
TRACE_NOT_RECEIVED = Template(
    "launch.trace_not_received",
    "unisono run: a trace of host {host} is missing: {reason}",
    "unisono run：缺少主机 {host} 的一份跟踪记录：{reason}",
)
TRACE_TOO_LONG = Template(
    "launch.trace_too_long",
    "the traces of this host are longer than {most:.0f} MiB; record only a part of the run (comm.trace)",
    "该主机的跟踪记录超过 {most:.0f} MiB；请只记录运行的一部分（comm.trace）",
)
BAD_TRACE_LINE = Template(
    "launch.bad_trace_line", "a line from the agent is invalid: {reason}", "代理发来的一行无效：{reason}"
)
WITHOUT_HOSTS = Template(
    "launch.without_hosts",
    "{option} needs --hosts",
    "{option} 需要与 --hosts 一起使用",
)
TLS_FILES_MISSING = Template(
    "launch.tls_files_missing",
    "TLS needs three files; missing: {missing}",
    "TLS 需要三个文件；缺少：{missing}",
)

# spawn()
NO_SUCH_START = Template(
    "launch.no_such_start",
    "spawn: start={start!r}; expected 'fork' or 'spawn'",
    "spawn：start={start!r}；应为 'fork' 或 'spawn'",
)
RANK_STOPPED = Template(
    "launch.rank_stopped",
    "this rank was stopped: it was still running after another rank had failed",
    "该 rank 已被终止：另一个 rank 失败后它仍在运行",
)
RANK_KILLED = Template(
    "launch.rank_killed",
    "rank {rank} was killed by {signal} before it returned",
    "rank {rank} 在返回之前被 {signal} 终止",
)
RANK_EXITED = Template(
    "launch.rank_exited",
    "rank {rank} exited with code {code} before it returned",
    "rank {rank} 在返回之前退出，退出码为 {code}",
)
CANNOT_PICKLE = Template(
    "launch.cannot_pickle",
    "spawn: rank {rank} produced {value}, which cannot be sent back to the parent: {reason}",
    "spawn：rank {rank} 的结果 {value} 无法传回父进程：{reason}",
)
ON_RANKS = Template("launch.on_ranks", "on {ranks}", "位于 {ranks}")

# unisono run
INTERRUPTED = Template("launch.interrupted", "interrupted", "已中断")
ENDED_BY_SIGNAL = Template("launch.ended_by_signal", "ended by {signal}", "被 {signal} 终止")
RANK_STALLED = Template(
    "launch.rank_stalled",
    "rank {rank} of {size} did not respond: other ranks timed out waiting for it",
    "rank {rank}（共 {size} 个）没有响应：其他 rank 等待它时超时",
)
RANK_LEFT = Template(
    "launch.rank_left",
    "rank {rank} of {size} ended before the others: exit code 0, but they still needed it",
    "rank {rank}（共 {size} 个）先于其他 rank 结束：退出码为 0，但其他 rank 仍需要它",
)
RANK_FAILED = Template(
    "launch.rank_failed",
    "rank {rank} of {size} failed first: exit code {code}",
    "rank {rank}（共 {size} 个）最先失败：退出码为 {code}",
)
RANK_FAILED_BY_SIGNAL = Template(
    "launch.rank_failed_by_signal",
    "rank {rank} of {size} failed first: killed by {signal}",
    "rank {rank}（共 {size} 个）最先失败：被 {signal} 终止",
)
NO_MODULE = Template(
    "launch.no_module",
    "-m without a module; expected e.g. `unisono run -n 4 -m my_package.train`",
    "-m 后缺少模块名；例如 `unisono run -n 4 -m my_package.train`",
)
NO_PROGRAM = Template(
    "launch.no_program",
    "no program to run; expected e.g. `unisono run -n 4 script.py`",
    "缺少要运行的程序；例如 `unisono run -n 4 script.py`",
)
NO_SUCH_FILE = Template("launch.no_such_file", "there is no file {name!r}", "找不到文件 {name!r}")
NO_SUCH_PROGRAM = Template(
    "launch.no_such_program",
    "there is no program {name!r}; expected a file.py, -m module, or a program",
    "找不到程序 {name!r}；应为 file.py、-m 模块名或其他程序",
)
DID_YOU_MEAN = Template(
    "launch.did_you_mean",
    "there is no program {name!r}; did you mean {near!r}?",
    "找不到程序 {name!r}；是否想写 {near!r}？",
)
NO_TRACE_FOLDER = Template(
    "launch.no_trace_folder",
    "--trace {name}: {reason}; expected a folder, or the name of a new one",
    "--trace {name}：{reason}；应为一个目录，或新目录的名称",
)
NO_TRACE = Template(
    "launch.no_trace",
    "no trace: no rank has closed a Unisono communicator",
    "没有跟踪记录：没有 rank 关闭过 Unisono 通信器",
)
TRACE_WRITTEN = Template(
    "launch.trace_written",
    "trace of {traced}{missing}: {path} ({events} events{dropped})",
    "{traced} 的跟踪记录{missing}：{path}（{events} 个事件{dropped}）",
)
TRACE_NOT_JOINED = Template(
    "launch.trace_not_joined",
    "the traces in {path} were not joined: {reason}",
    "{path} 中的跟踪记录未能合并：{reason}",
)
TRACE_RANK = Template("launch.trace_rank", "1 rank", "1 个 rank")
TRACE_RANKS = Template("launch.trace_ranks", "{count} ranks", "{count} 个 rank")
TRACE_MISSING = Template("launch.trace_missing", ", without rank {ranks}", "，缺少 rank {ranks}")
TRACE_DROPPED = Template("launch.trace_dropped", "; the oldest {count} were dropped", "；最早的 {count} 个已丢弃")

# mps.py
NO_MPS = Template(
    "launch.no_mps",
    "MPS: there is no program {program!r}; expected it on the PATH; hint: it comes with NVIDIA's driver",
    "MPS：找不到程序 {program!r}；它应位于 PATH 中；建议：它随 NVIDIA 驱动程序一起安装",
)
MPS_WITHOUT_GPU = Template(
    "launch.mps_without_gpu",
    "MPS: this machine has no NVIDIA GPU, or its driver is not loaded ({driver} does not exist)",
    "MPS：本机没有 NVIDIA GPU，或其驱动程序未加载（{driver} 不存在）",
)
MPS_NOT_STARTED = Template(
    "launch.mps_not_started",
    "MPS: `{command}` did not start a daemon: {reason}; its log: {log}",
    "MPS：`{command}` 未能启动守护程序：{reason}；其日志：{log}",
)
MPS_EXIT_CODE = Template("launch.mps_exit_code", "it ended with code {code}", "它以返回码 {code} 结束")
MPS_TIMEOUT = Template(
    "launch.mps_timeout", "it did not answer within {seconds} seconds", "它在 {seconds} 秒内没有应答"
)
MPS_NO_LOG = Template("launch.mps_no_log", "(empty)", "（空）")
MPS_AND_HOSTS = Template(
    "launch.mps_and_hosts",
    "--mps cannot be combined with --hosts; hint: start an MPS daemon on every host before the job",
    "--mps 不能与 --hosts 一起使用；建议：在作业开始之前，在每台主机上启动 MPS 守护程序",
)
