"""The messages about the connection between the GPUs of a communicator's ranks."""

from __future__ import annotations

from unisono.message import Template

NO_DRIVER = Template(
    "gpu.no_driver",
    "CUDA arrays cannot be used: {reason}. hint: install NVIDIA's driver, or pass arrays on the CPU; `unisono info` "
    "lists the GPUs",
    "无法使用 CUDA 数组：{reason}。建议：安装 NVIDIA 驱动，或传入 CPU 数组；`unisono info` 会列出 GPU",
)
NO_SUCH_DEVICE = Template(
    "gpu.no_such_device",
    "there is no CUDA device {device}; the driver knows {count}",
    "没有 CUDA 设备 {device}；驱动共识别到 {count} 个",
)
SEVERAL_HOSTS = Template(
    "gpu.several_hosts",
    "{call}: CUDA arrays between hosts are not supported yet; the ranks are on {hosts} hosts. hint: copy the arrays "
    "to the CPU",
    "{call}：尚不支持主机之间的 CUDA 数组；各 rank 位于 {hosts} 台主机上。建议：将数组复制到 CPU",
)
TOO_MANY_RANKS = Template(
    "gpu.too_many_ranks",
    "{call}: CUDA arrays on {size} ranks; expected at most {most} ranks. hint: copy the arrays to the CPU",
    "{call}：{size} 个 rank 使用 CUDA 数组；最多支持 {most} 个 rank。建议：将数组复制到 CPU",
)
PROBLEM_ON_RANK = Template(
    "gpu.problem_on_rank",
    "rank {rank} cannot use its GPU for this communicator: {reason}",
    "rank {rank} 无法为该通信器使用其 GPU：{reason}",
)
NO_PEER_ACCESS = Template(
    "gpu.no_peer_access",
    "rank {rank} on {device} ({uuid}) cannot access the memory of {other_device} ({other_uuid}), which rank {other} "
    "uses: the GPUs have no peer access. hint: copy the arrays to the CPU, or use NCCL",
    "rank {rank} 使用的 {device}（{uuid}）无法访问 rank {other} 使用的 {other_device}（{other_uuid}）的内存："
    "两个 GPU 之间没有对等访问。建议：将数组复制到 CPU，或使用 NCCL",
)

# Why a mode is used.
ONE_RANK_PER_GPU = Template("gpu.one_rank_per_gpu", "every rank has a separate GPU", "每个 rank 独占一个 GPU")
SHARED_UNDER_MPS = Template(
    "gpu.shared_under_mps", "ranks that share a GPU run under MPS", "共享 GPU 的 rank 在 MPS 下运行"
)
SHARED_WITHOUT_MPS = Template(
    "gpu.shared_without_mps",
    "ranks {ranks} share a GPU without MPS. hint: `unisono run --mps` starts MPS for the job",
    "rank {ranks} 共享一个 GPU，但没有使用 MPS。建议：`unisono run --mps` 会为作业启动 MPS",
)
DIFFERENT_MPS = Template(
    "gpu.different_mps",
    "ranks {ranks} share a GPU under different MPS daemons (CUDA_MPS_PIPE_DIRECTORY: {directories}). hint: use one "
    "daemon for all",
    "rank {ranks} 共享一个 GPU，但使用不同的 MPS 守护程序（CUDA_MPS_PIPE_DIRECTORY：{directories}）。"
    "建议：全部使用同一个守护程序",
)
