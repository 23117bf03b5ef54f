"""The sentences of the bootstrap, for users, in English and Chinese."""

from __future__ import annotations

from unisono.message import Template

# The environment variables of launchers (environment.py).
SEVERAL_HOSTS = Template(
    "bootstrap.several_hosts",
    "{launcher} has started {size} ranks, {local_size} of them on this host; expected all of them on one host: "
    "several hosts are not supported yet",
    "{launcher} 启动了 {size} 个进程，其中 {local_size} 个在本机；应全部在同一台机器上：尚不支持多机",
)
VARIABLES_MISSING = Template(
    "bootstrap.variables_missing",
    "the environment has {present} but not {missing}; expected all of the variables that {launcher} sets, or none",
    "环境变量中有 {present}，但缺少 {missing}；应有 {launcher} 设置的全部变量，或一个都没有",
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
    "环境变量 {local_name}={local_size}，{name}={size}；本机进程数不应超过总进程数",
)
NO_JOB_NAME = Template(
    "bootstrap.no_job_name",
    "the environment has {name}={size} but not {job}; expected these as well, to identify the job",
    "环境变量中有 {name}={size}，但缺少 {job}；需要它们来识别作业",
)
NOT_TASKS = Template(
    "bootstrap.not_tasks",
    "the environment has SLURM_STEP_TASKS_PER_NODE={text!r} on node {node}; expected the tasks of each node, such as "
    "2(x3),1",
    "节点 {node} 上环境变量 SLURM_STEP_TASKS_PER_NODE={text!r}；应为各节点的任务数，例如 2(x3),1",
)

# Uncaught errors of several ranks (error_report.py).
RANK = Template("bootstrap.rank", "rank {ranks} of {size}", "进程 {ranks}（共 {size} 个）")
RANKS = Template("bootstrap.ranks", "ranks {ranks} of {size}", "进程 {ranks}（共 {size} 个）")
INTERRUPTED_RANKS = Template("bootstrap.interrupted_ranks", "{ranks}: interrupted", "{ranks}：已中断")
