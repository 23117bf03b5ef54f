"""The messages of the torch backend; those about tensors are in ``tensor_messages.py``."""

from __future__ import annotations

from unisono.message import Template

# Reductions.
NO_SUCH_OP = Template(
    "torch_backend.no_such_op", "{call}: op={op}; expected one of {names}", "{call}：op={op}；应为 {names} 之一"
)
AVERAGE_OF_BOOLEANS = Template(
    "torch_backend.average_of_booleans",
    "{call}: an average of booleans has no meaning; use MAX or MIN",
    "{call}：布尔值的平均没有意义；请使用 MAX 或 MIN",
)
SPARSE_SUM_ONLY = Template(
    "torch_backend.sparse_sum_only",
    "all_reduce of a sparse tensor: unsupported reduction operation {op}; expected SUM",
    "稀疏张量的 all_reduce：不支持归约运算 {op}；应为 SUM",
)

# Groups, works and futures.
GROUP_DESTROYED = Template(
    "torch_backend.group_destroyed",
    "{call}: the process group {group} was destroyed",
    "{call}：进程组 {group} 已被销毁",
)
DESTROYED_BEFORE_CALLBACK = Template(
    "torch_backend.destroyed_before_callback",
    "the process group was destroyed before the call of a callback was made",
    "在回调发起的调用执行之前，进程组已被销毁",
)
NOT_FINISHED = Template(
    "torch_backend.not_finished",
    "{call} has not finished after {seconds} s and is still running; wait again",
    "{call} 在 {seconds} 秒后尚未完成，仍在运行；请再次等待",
)
NO_SOURCE = Template(
    "torch_backend.no_source", "{call}: only a receive has a source", "{call}：只有接收才有来源 rank"
)
CALL_OF_GROUP = Template("torch_backend.call_of_group", "{call} of group {group}", "进程组 {group} 的 {call}")
FUTURE_OF_PARENT = Template(
    "torch_backend.future_of_parent",
    "process {child} was forked from process {parent}, to which this future belongs: wait for it there",
    "进程 {child} 由进程 {parent} fork 而来，该 future 属于后者：请在那里等待",
)
NO_BACKEND_FOR_DEVICE = Template(
    "torch_backend.no_backend_for_device",
    "a tensor on {device}: there is no backend for this device in this group; name one, as in "
    'init_process_group("cpu:unisono,{kind}:BACKEND")',
    "张量位于 {device}：该进程组没有用于此设备的后端；请指定一个，例如 "
    'init_process_group("cpu:unisono,{kind}:BACKEND")',
)
OTHER_DEVICE_TYPE = Template(
    "torch_backend.other_device_type",
    "backend {backend}: the backend unisono takes tensors on the CPU and on CUDA devices; name another one for the "
    'device {device}, as in "cpu:unisono,{device}:BACKEND"',
    "后端 {backend}：unisono 后端接受 CPU 和 CUDA 设备上的张量；请为设备 {device} 指定其他后端，例如 "
    '"cpu:unisono,{device}:BACKEND"',
)
FAILED_ON_GPU = Template(
    "torch_backend.failed_on_gpu",
    "unisono: a call on a GPU has failed, and results since then are wrong; the next call of the group raises: "
    "{error}",
    "unisono：GPU 上的一次调用已失败，此后的结果不正确；该进程组的下一次调用会抛出：{error}",
)
OPTIONS_IGNORED = Template(
    "torch_backend.options_ignored",
    "pg_options of type {kind} have no effect on the backend unisono; it takes unisono.torch_backend.Options",
    "类型为 {kind} 的 pg_options 对 unisono 后端不起作用；应使用 unisono.torch_backend.Options",
)
PARTS_MISSING = Template(
    "torch_backend.parts_missing",
    "torch {version} lacks parts that the backend unisono uses: {parts}; it was tested with torch {tested}: install "
    "one of these, or a newer Unisono",
    "torch {version} 缺少 unisono 后端所用的部分：{parts}；已测试的版本是 torch {tested}："
    "请安装其中之一，或更新 Unisono",
)
UNTESTED_VERSION = Template(
    "torch_backend.untested_version",
    "the backend unisono was tested with torch {tested}, and this is torch {version}; it has all private parts that "
    "the backend uses, but they may behave differently",
    "unisono 后端已用 torch {tested} 测试，当前为 torch {version}；后端所用的私有部分都存在，但行为可能不同",
)

# The codec hook.
HOOK_BACKEND = Template(
    "torch_backend.hook_backend",
    "codec_hook({codec}): the group's backend is {backend}; expected unisono. Create the group with "
    'init_process_group("unisono"), and register the hook with that group, or None, as its state',
    "codec_hook({codec})：进程组的后端是 {backend}；应为 unisono。请用 "
    'init_process_group("unisono") 建立进程组，并以该组或 None 作为 state 注册此钩子',
)
HOOK_DEVICE = Template(
    "torch_backend.hook_device",
    "codec_hook({codec}): gradients on {device}; expected them on the CPU or on a CUDA device",
    "codec_hook({codec})：梯度位于 {device}；应位于 CPU 或 CUDA 设备",
)

# The monitored barrier. Torch's own tests look for the words of Gloo, which the English texts contain.
BARRIER_ON_RANK_0 = Template("torch_backend.barrier_on_rank_0", "[Rank 0]: {problem}", "[rank 0]：{problem}")
BARRIER_ON_OTHER_RANK = Template(
    "torch_backend.barrier_on_other_rank",
    "Rank {rank} successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0: "
    "{problem}",
    "rank {rank} 已到达 monitoredBarrier，但在等待 rank 0 时收到错误：{problem}",
)
BARRIER_RANK_0_SILENT = Template(
    "torch_backend.barrier_rank_0_silent",
    "rank 0 did not answer within {seconds:g} s",
    "rank 0 在 {seconds:g} 秒内没有应答",
)
BARRIER_WITHOUT_TIME = Template(
    "torch_backend.barrier_without_time",
    "Rank 0 timed out in monitoredBarrier after 0 ms, before it could wait for any rank; give a timeout above 0",
    "rank 0 在 monitoredBarrier 中 0 毫秒后超时，没有时间等待任何 rank；请给出大于 0 的超时时间",
)
BARRIER_RANK_MISSING = Template(
    "torch_backend.barrier_rank_missing",
    "Rank {ranks} failed to pass monitoredBarrier in {milliseconds:g} ms",
    "rank {ranks} 在 {milliseconds:g} 毫秒内没有到达 monitoredBarrier",
)
BARRIER_RANKS_MISSING = Template(
    "torch_backend.barrier_ranks_missing",
    "Ranks {ranks} failed to pass monitoredBarrier in {milliseconds:g} ms",
    "rank {ranks} 在 {milliseconds:g} 毫秒内没有到达 monitoredBarrier",
)

# The rendezvous through torch's store.
INIT = Template("torch_backend.init", "init_process_group: {problem}", "init_process_group：{problem}")
STORE_IN_USE = Template(
    "torch_backend.store_in_use",
    "init_process_group: process {process} is rank 0 in this store already and is waiting for its ranks; hint: give "
    "every job its own store (another MASTER_PORT, another file)",
    "init_process_group：进程 {process} 已是该 store 中的 rank 0，正在等待其他 rank；建议：为每个作业使用不同的 "
    "store（不同的 MASTER_PORT 或不同的文件）",
)
FOREIGN_STORE_CONTENT = Template(
    "torch_backend.foreign_store_content",
    "{call}: the store's {key} is not what rank 0 writes there: {content}; hint: check whether another "
    "program, or another version of Unisono, uses this store",
    "{call}：store 中的 {key} 不是 rank 0 写入的内容：{content}；建议：检查是否有其他程序或其他版本的 Unisono "
    "在使用该 store",
)
NOT_ON_ONE_HOST = Template(
    "torch_backend.not_on_one_host",
    "init_process_group: torchrun states that all ranks are on one host, but rank 0 is on {host_0} and rank {rank} "
    "on {host}, which are different machines or containers; hint: start ranks on several hosts with "
    "torchrun --nnodes",
    "init_process_group：torchrun 声明所有 rank 都在同一台主机上，但 rank 0 在 {host_0} 上，"
    "rank {rank} 在 {host} 上，它们是不同的机器或容器；建议：使用 torchrun --nnodes 在多台主机上启动 rank",
)
NO_RANK_0 = Template(
    "torch_backend.no_rank_0",
    "init_process_group: timed out after {seconds:g} s waiting for rank 0 of {size}; hint: check that it was "
    "started, or {hint}",
    "init_process_group：等待 rank 0（共 {size} 个 rank），{seconds:g} 秒后超时；建议：检查它是否已启动，或{hint}",
)
HINT_INIT_TIMEOUT = Template(
    "torch_backend.hint_init_timeout",
    "give init_process_group() a longer timeout",
    "增大 init_process_group() 的 timeout",
)
