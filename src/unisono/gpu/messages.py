"""The sentences that the lowering to device programs says."""

from unisono.message import Template

STUCK = Template(
    "gpu.stuck",
    "no order of the instructions was found in which all ranks can finish, although the program was proved",
    "程序已通过证明，却找不到使所有 rank 都能结束的指令顺序",
)
UNKNOWN_LENGTH = Template(
    "gpu.unknown_length",
    "{algorithm}: a rank moves data whose length only other ranks know; with sizes, use an algorithm that sends "
    "every block straight to its receiver",
    "{algorithm}：某个 rank 要搬移的数据长度只有其他 rank 知道；指定各块长度时，请选用把每块直接发给接收者的算法",
)
SCRATCH_TOO_SMALL = Template(
    "gpu.scratch_too_small",
    "{algorithm}: a rank stages too many chunks for the scratch memory of a GPU; choose another algorithm",
    "{algorithm}：一个 rank 中转的块太多，GPU 的中转内存容纳不下；请选用其他算法",
)
STOCHASTIC = Template(
    "gpu.stochastic",
    "codec {codec}: stochastic rounding works on CPU arrays only; on CUDA tensors, use the same codec without it",
    "编解码器 {codec}：随机舍入只支持 CPU 数组；对 CUDA 张量，请使用同一编解码器，但不带随机舍入",
)
