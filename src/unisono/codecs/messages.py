"""The messages of the codecs, in English and Chinese: errors about names, arrays and bounds."""

from unisono.message import Template

# Codecs.
NO_CODEC = Template(
    "codecs.no_codec", "there is no codec {name}; expected {expected}", "没有名为 {name} 的编解码器；应为{expected}"
)
NAMES = Template(
    "codecs.names",
    "one of {formats}, or topk:F with a fraction F above 0 and at most 1, such as topk:0.01",
    " {formats} 之一，或 topk:F，其中 F 大于 0 且不超过 1，例如 topk:0.01",
)
NOT_STOCHASTIC = Template(
    "codecs.not_stochastic",
    "codec {name} has no stochastic rounding; expected one of {formats}",
    "编解码器 {name} 不支持随机舍入；应为 {formats} 之一",
)
BAD_SEED = Template(
    "codecs.bad_seed",
    "the seed of a codec is {seed}; expected a whole number from 0 to 2**64 - 1",
    "编解码器的种子为 {seed}；应为 0 到 2**64 - 1 之间的整数",
)
NOT_TOPK = Template(
    "codecs.not_topk",
    "all_reduce_topk needs codec topk:F; found {codec}",
    "all_reduce_topk 需要编解码器 topk:F；实际为 {codec}",
)
TOPK_OP = Template(
    "codecs.topk_op",
    "codec {codec} drops elements, so it supports only op='sum' and op='avg'; found op={op}",
    "编解码器 {codec} 会丢弃元素，因此只支持 op='sum' 和 op='avg'；实际为 op={op}",
)
BAD_WIRE = Template(
    "codecs.bad_wire",
    "{count} elements in codec {codec} are a flat array of {bytes} uint8; found {dtype} of shape {shape}",
    "编解码器 {codec} 的 {count} 个元素应为 {bytes} 个 uint8 的一维数组；实际为 {dtype}，形状 {shape}",
)
FEEDBACK_DEVICE = Template(
    "codecs.feedback_device",
    "the array of {key} is on {found}; expected it on {expected}, as before. Give each tensor its own key, or call "
    "forget(key) first",
    "{key} 的数组位于 {found}；应与之前相同，位于 {expected}。请为每个张量使用单独的键，或先调用 forget(key)",
)
FEEDBACK_LENGTH = Template(
    "codecs.feedback_length",
    "the array of {key} has {found} elements; expected {expected}, as before. Give each tensor its own key, or call "
    "forget(key) first",
    "{key} 的数组有 {found} 个元素；应与之前相同，为 {expected} 个。请为每个张量使用单独的键，或先调用 forget(key)",
)

# Arrays. {name} is how the caller names the array.
ARRAY_TO_ENCODE = Template("codecs.array_to_encode", "the array to encode", "要编码的数组")
ARRAY_TO_ROUND = Template("codecs.array_to_round", "the array to round", "要舍入的数组")
ARRAY_OF_KEY = Template("codecs.array_of_key", "the array of {key}", "{key} 的数组")
ARRAY_TO_REDUCE = Template("codecs.array_to_reduce", "all_reduce: the array", "all_reduce：数组")
OTHER_DEVICE = Template(
    "codecs.other_device",
    "{name} is on {device}; expected a tensor on the CPU or on a CUDA device",
    "{name}位于 {device}；应为 CPU 或 CUDA 设备上的张量",
)
NEEDS_TORCH = Template(
    "codecs.needs_torch",
    "codecs on CUDA arrays need torch, which is not installed",
    "CUDA 数组上的编解码器需要 torch，但未安装",
)
OTHER_DTYPE = Template(
    "codecs.other_dtype",
    "{name} has dtype {dtype}; codecs support float32",
    "{name}的 dtype 是 {dtype}；编解码器只支持 float32",
)
NEGATIVE_VIEW = Template(
    "codecs.negative_view",
    "{name} is a view with the negative bit set; expected a tensor whose memory can be used directly",
    "{name}是设置了负号位的视图；应为可以直接使用其内存的张量",
)
NOT_AN_ARRAY = Template(
    "codecs.not_an_array",
    "{name} is a {type}; expected a numpy array, a torch tensor or a CUDA array",
    "{name}的类型是 {type}；应为 numpy 数组、torch 张量或 CUDA 数组",
)
NOT_CONTIGUOUS = Template(
    "codecs.not_contiguous",
    "{name} is not contiguous (shape {shape}); pass a contiguous copy",
    "{name}不连续（形状 {shape}）；请传入连续的副本",
)
READ_ONLY = Template(
    "codecs.read_only", "{name} is read-only; expected a writable array", "{name}是只读的；应为可写的数组"
)
NO_MEMORY = Template(
    "codecs.no_memory",
    "{name} is a {type} without memory; expected a dense tensor",
    "{name}的类型是 {type}，没有实际内存；应为稠密张量",
)
NESTED = Template(
    "codecs.nested", "{name} is a nested tensor; expected a dense one", "{name}是嵌套张量；应为稠密张量"
)
STORAGE_TOO_SMALL = Template(
    "codecs.storage_too_small",
    "{name} needs a storage of {needed} bytes, and its storage has {found}: it was freed or shrunk "
    "(untyped_storage().resize_); restore its memory before the call",
    "{name}需要 {needed} 字节的存储，而它的存储只有 {found} 字节：存储已被释放或缩小（untyped_storage().resize_）；"
    "请在调用前恢复其内存",
)

# Bounds.
BAD_RANKS = Template(
    "codecs.bad_ranks",
    "error_bound: ranks={ranks}; expected a number of ranks, 1 or more",
    "error_bound：ranks={ranks}；应为不小于 1 的 rank 数",
)
BAD_ROUNDINGS = Template(
    "codecs.bad_roundings",
    "error_bound: roundings={roundings} with {ranks} ranks; expected a number from 0 to {most}, such as "
    "unisono.verifier.count_roundings(schedule)",
    "error_bound：{ranks} 个 rank 时 roundings={roundings}；应为 0 到 {most} 之间的整数，例如 "
    "unisono.verifier.count_roundings(schedule)",
)
AUTO_TOPK = Template(
    "codecs.auto_topk",
    "codec auto:{name}: top-k drops most numbers, so it is not selected automatically; expected a number format, "
    "such as auto:bf16",
    "编解码器 auto:{name}：top-k 会丢弃大部分数，不能自动选用；应为数值格式，例如 auto:bf16",
)
