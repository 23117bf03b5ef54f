"""The messages about calls on CUDA arrays."""

from __future__ import annotations

from unisono.message import Template

THE_CPU = Template("comm.the_cpu", "the CPU", "CPU（主机）")
A_CUDA_DEVICE = Template("comm.a_cuda_device", "CUDA device {device}", "CUDA 设备 {device}")
DEVICES_DIFFER = Template(
    "comm.devices_differ",
    "{call}: out is on {output} and the input is on {input}; expected both on the same device",
    "{call}：out 位于 {output}，输入位于 {input}；二者应在同一设备上",
)
NOT_CONTIGUOUS = Template(
    "comm.not_contiguous_cuda_array",
    "{array} is not contiguous (shape {shape}, strides {strides}); pass a contiguous copy, and copy the result back "
    "if it is an output",
    "{array}不连续（形状 {shape}，步长 {strides}）；请传入连续的副本，若为输出再把结果复制回来",
)
NOT_DEVICE_MEMORY = Template(
    "comm.not_device_memory",
    "{array} has __cuda_array_interface__, but its address is not in the memory of a CUDA device",
    "{array}带有 __cuda_array_interface__，但其地址不在 CUDA 设备的内存中",
)
OTHER_DEVICE = Template(
    "comm.other_cuda_device",
    "{call}: the array is on CUDA device {found}, but the earlier CUDA calls of this communicator were on CUDA "
    "device {expected}; expected the same device in all calls. hint: comm.duplicate() for the other device",
    "{call}：数组位于 CUDA 设备 {found}，而该通信器此前的 CUDA 调用位于 CUDA 设备 {expected}；"
    "所有调用应在同一设备上。建议：为另一设备使用 comm.duplicate()",
)
NO_CUDA_DEVICE = Template("comm.no_cuda_device", "no CUDA device", "不属于任何 CUDA 设备")
FOREIGN_MEMORY = Template(
    "comm.foreign_cuda_memory",
    "a buffer at address {address} is not in the memory of the CUDA device of this communicator\n"
    "  expected: an array on the device of the communicator's earlier CUDA calls\n"
    "  found:    {found}\n"
    "  hint:     comm.duplicate() for another device",
    "地址 {address} 处的缓冲区不在该通信器所用 CUDA 设备的内存中\n"
    "  期望：位于该通信器此前 CUDA 调用所在的设备\n"
    "  实际：{found}\n"
    "  建议：为其他设备使用 comm.duplicate()",
)
CAPTURED_IN_STREAM_MODE = Template(
    "comm.captured_in_stream_mode",
    "a CUDA graph cannot capture calls of this communicator: it uses stream mode, in which every call needs new "
    "operations of the stream; expected kernel mode. hint: unisono run --mps, or one GPU per rank",
    "CUDA graph 无法捕获该通信器的调用：它使用 stream 模式，每次调用都需要新的流操作；应使用 kernel 模式。"
    "建议：unisono run --mps，或每个 rank 使用一块 GPU",
)
CAPTURED_TRANSFER = Template(
    "comm.captured_transfer",
    "a CUDA graph cannot capture send and recv; expected a collective. hint: make the call before or after the graph",
    "CUDA graph 无法捕获 send 和 recv，只能捕获集合通信。建议：在 graph 之前或之后调用",
)
ANY_SOURCE = Template(
    "comm.any_source_on_cuda",
    "recv: src=None with a CUDA array; a receive from any rank is possible on the CPU only. hint: name the rank, or "
    "receive into an array on the CPU",
    "recv：CUDA 数组不能使用 src=None；只有 CPU 数组支持从任意 rank 接收。建议：指明 rank，或接收到 CPU 数组",
)
TOPK_NEEDS_TORCH = Template(
    "comm.topk_needs_torch",
    "all_reduce: codec={codec} with a CUDA array needs the module {module}, which cannot be imported. hint: install "
    "torch, or choose another codec, such as fp8_e4m3",
    "all_reduce：对 CUDA 数组使用 codec={codec} 需要模块 {module}，但无法导入。"
    "建议：安装 torch，或选择其他编解码器（例如 fp8_e4m3）",
)
STAGED = Template(
    "comm.staged_on_cuda",
    "rank {rank}: the memory of a CUDA array cannot be shared with the other ranks, so calls copy it through a "
    "staging buffer. hint: do not use torch's expandable segments or a memory pool that cannot be exported",
    "rank {rank}：CUDA 数组的内存无法与其他 rank 共享，调用将经由中转缓冲区复制。"
    "建议：不要使用 torch 的可扩展段，或无法导出的内存池",
)
