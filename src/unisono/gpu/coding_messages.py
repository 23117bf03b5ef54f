"""The messages about codecs on CUDA arrays."""

from __future__ import annotations

from unisono.message import Template

NO_BINDINGS = Template(
    "gpu.no_bindings",
    "codecs on CUDA arrays need cuda-bindings, which is not installed; pip install 'cuda-core[cu13]' installs it",
    "CUDA 数组上的编解码器需要 cuda-bindings，但未安装；可用 pip install 'cuda-core[cu13]' 安装",
)
LAUNCH_FAILED = Template(
    "gpu.launch_failed", "CUDA kernel {kernel}: the driver returned {error}", "CUDA 内核 {kernel}：驱动返回 {error}"
)
NOT_A_WIRE = Template(
    "gpu.not_a_wire",
    "the wire is not valid for codec {codec}: its windows or positions do not fit {count} elements",
    "该编码数据不是编解码器 {codec} 的有效数据：其窗口或位置与 {count} 个元素不符",
)
