"""The messages about the tensors of a call and the lists they come in.

Where Gloo has a text for a mistake, ours contains its words.
"""

from __future__ import annotations

from unisono.message import Template

# Tensors.
NOT_A_TENSOR = Template(
    "torch_backend.not_a_tensor", "{call}: {kind}; expected a tensor", "{call}：类型为 {kind}；应为张量"
)
NOT_ON_CPU = Template(
    "torch_backend.not_on_cpu",
    "{call}: a tensor on {device}; the backend unisono takes tensors on the CPU and on CUDA devices",
    "{call}：张量位于 {device}；unisono 后端接受 CPU 和 CUDA 设备上的张量",
)
TWO_DEVICES = Template(
    "torch_backend.two_devices",
    "{call}: tensors on {first} and on {second}; expected all of them on one device",
    "{call}：张量位于 {first} 和 {second}；应全部位于同一设备",
)
ANY_SOURCE_ON_GPU = Template(
    "torch_backend.any_source_on_gpu",
    "recv: a tensor on {device} from any rank; expected a source: a receive from any rank works with tensors on the "
    "CPU",
    "recv：接收位于 {device} 的张量时未指定来源；应给出来源 rank：只有 CPU 张量可以从任意 rank 接收",
)
NOT_DENSE = Template(
    "torch_backend.not_dense",
    "{call}: a tensor of layout {layout}; expected a dense one",
    "{call}：张量的布局是 {layout}；应为稠密张量",
)
ELEMENTS_SHARE_MEMORY = Template(
    "torch_backend.elements_share_memory",
    "an output of shape {shape} and strides {strides}: several of its elements share one memory location, so it "
    "cannot hold a result; pass x.clone() of an expanded tensor",
    "输出的形状为 {shape}、步长为 {strides}：多个元素共用同一内存位置，无法存放结果；"
    "若为 expand 得到的张量，请传入 x.clone()",
)
NO_SUCH_DTYPE = Template(
    "torch_backend.no_such_dtype",
    "{call}: dtype {dtype}; expected one of {known}",
    "{call}：dtype 为 {dtype}；应为 {known} 之一",
)
QUANTIZED = Template(
    "torch_backend.quantized",
    "a quantized tensor ({dtype}); pass x.dequantize() or x.int_repr()",
    "量化张量（{dtype}）；请传入 x.dequantize() 或 x.int_repr()",
)
INPUT = Template("torch_backend.input", "input", "输入")
OUTPUT = Template("torch_backend.output", "output", "输出")
NUMBERED = Template("torch_backend.numbered", "{call}: {name} {index}", "{call}：第 {index} 个{name}")
WRONG_TYPE_IN_LIST = Template(
    "torch_backend.wrong_type_in_list",
    "{call}: invalid tensor type at index {index}: {name} {index} is {dtype}; expected {expected}",
    "{call}：下标 {index} 处的张量类型无效：{name} {index} 是 {dtype}；应为 {expected}",
)
WRONG_SIZE_IN_LIST = Template(
    "torch_backend.wrong_size_in_list",
    "{call}: invalid tensor size at index {index}: {name} {index} has {count} elements; expected {expected}",
    "{call}：下标 {index} 处的张量大小无效：{name} {index} 有 {count} 个元素；应为 {expected} 个",
)
OUTPUT_UNLIKE_INPUT = Template(
    "torch_backend.output_unlike_input",
    "{call}: invalid tensor size at index {index}: output {index} has {count} elements; expected {expected}, as the "
    "input",
    "{call}：下标 {index} 处的张量大小无效：输出 {index} 有 {count} 个元素；应与输入相同，为 {expected} 个",
)
INPUT_UNLIKE_OUTPUT = Template(
    "torch_backend.input_unlike_output",
    "{call}: input {index} has {count} elements; expected {expected}, as the output",
    "{call}：输入 {index} 有 {count} 个元素；应与输出相同，为 {expected} 个",
)
ROWS_NOT_DIVISIBLE = Template(
    "torch_backend.rows_not_divisible",
    "{call}: {rows} rows of the {name} do not divide into {size} equal parts; give the splits",
    "{call}：{name}的 {rows} 行无法均分为 {size} 份；请给出 splits",
)
BAD_SPLITS = Template(
    "torch_backend.bad_splits",
    "{call}: {name}_split_sizes={splits}; expected {size} numbers of rows with the sum {rows}",
    "{call}：{name}_split_sizes={splits}；应为 {size} 个行数，总和为 {rows}",
)
NOT_A_MULTIPLE = Template(
    "torch_backend.not_a_multiple",
    "{call}: the {whole} has {whole_count} {whole_dtype} and the {part} {part_count} {part_dtype}; expected {size} "
    "times as many, of the same type",
    "{call}：{whole}有 {whole_count} 个 {whole_dtype}，{part}有 {part_count} 个 {part_dtype}；"
    "前者应为后者的 {size} 倍，且类型相同",
)
TYPES_DIFFER = Template(
    "torch_backend.types_differ",
    "{call}: the input is {input} and the output {output}; expected the same type",
    "{call}：输入是 {input}，输出是 {output}；类型应相同",
)
COUNTS_DIFFER = Template(
    "torch_backend.counts_differ",
    "{call}: the input has {input} elements and the output {output}; expected equal numbers, or the splits",
    "{call}：输入有 {input} 个元素，输出有 {output} 个；数目应相同，或给出 splits",
)
LIST_TYPES_DIFFER = Template(
    "torch_backend.list_types_differ",
    "{call}: input and output tensors must have the same type; found {input} and {output}",
    "{call}：输入与输出张量的类型必须相同；实际为 {input} 和 {output}",
)
OWN_PART_DIFFERS = Template(
    "torch_backend.own_part_differs",
    "{call}: invalid tensor size at index {index}, which stays on this rank: the input has {input} elements and the "
    "output {output}",
    "{call}：下标 {index}（留在本 rank）的张量大小无效：输入有 {input} 个元素，输出有 {output} 个",
)

# Lists of tensors.
BAD_ROOT = Template(
    "torch_backend.bad_root",
    "{call}: invalid root rank {root}; expected a rank from 0 to {last}",
    "{call}：根 rank {root} 无效；应为 0 到 {last} 之间的 rank 编号",
)
BAD_ROOT_TENSOR = Template(
    "torch_backend.bad_root_tensor",
    "{call}: invalid root tensor {index}; the call has {count} tensors, counted from 0",
    "{call}：根张量 {index} 无效；该调用有 {count} 个张量，从 0 计数",
)
WRONG_ALL_GATHER_COUNT = Template(
    "torch_backend.wrong_all_gather_count",
    "{call}: invalid {name} tensor list: {found} tensors as {name}; expected {size}, one tensor for each rank",
    "{call}：{name}张量列表无效：{name}有 {found} 个张量；应为 {size} 个，每个 rank 一个",
)
WRONG_ALL_TO_ALL_COUNT = Template(
    "torch_backend.wrong_all_to_all_count",
    "{call}: {name} tensor list size {found} does not match world size {size}, one tensor for each rank",
    "{call}：{name}张量列表长度 {found} 与 rank 数 {size} 不符，应每个 rank 一个张量",
)
WRONG_LIST_COUNT = Template(
    "torch_backend.wrong_list_count",
    "{call}: Incorrect {name} list size {found}. {title} list size should be {size}, one tensor for each rank",
    "{call}：{name}列表长度 {found} 不正确；{title} 列表长度应为 {size}，每个 rank 一个张量",
)
SINGLE_INPUT = Template(
    "torch_backend.single_input",
    "{call}: requires a single-element input tensor list; found {found} tensors",
    "{call}：输入张量列表应只有一个元素；实际有 {found} 个张量",
)
SINGLE_OUTPUT = Template(
    "torch_backend.single_output",
    "{call}: requires a single-element output tensor list; found {found} tensors",
    "{call}：输出张量列表应只有一个元素；实际有 {found} 个张量",
)
SINGLE_TENSOR = Template(
    "torch_backend.single_tensor",
    "{call}: requires a single-element tensor list; found {found} tensors",
    "{call}：张量列表应只有一个元素；实际有 {found} 个张量",
)
SINGLE_LIST_ON_ROOT = Template(
    "torch_backend.single_list_on_root",
    "{call}: requires a single-element {name} list on the root; found {found} lists",
    "{call}：根 rank 上的{name}列表应只有一个元素；实际有 {found} 个列表",
)
NO_LIST_ELSEWHERE = Template(
    "torch_backend.no_list_elsewhere",
    "{call}: requires empty {name} on non-root ranks; found {found} lists",
    "{call}：非根 rank 上的{name}应为空；实际有 {found} 个列表",
)
NO_INPUT = Template(
    "torch_backend.no_input",
    "{call}: requires non-empty input tensor list; found none",
    "{call}：输入张量列表不能为空",
)
NO_TENSORS = Template(
    "torch_backend.no_tensors", "{call}: requires non-empty tensor list; found none", "{call}：张量列表不能为空"
)
LIST_LENGTHS_DIFFER = Template(
    "torch_backend.list_lengths_differ",
    "{call}: requires input/output tensor lists to have the same length; found {inputs} and {outputs}",
    "{call}：输入与输出张量列表的长度应相同；实际为 {inputs} 和 {outputs}",
)
WRONG_LAYOUT = Template(
    "torch_backend.wrong_layout",
    "{call}: invalid tensor layout at index {index}: {layout}; expected {expected}",
    "{call}：下标 {index} 处的张量布局 {layout} 无效；应为 {expected}",
)
MIXED_TYPES = Template(
    "torch_backend.mixed_types",
    "{call}: tensors must all have the same type; found {first} and {other} (index {index})",
    "{call}：所有张量的类型必须相同；实际有 {first} 和 {other}（下标 {index}）",
)
UNSUPPORTED_LAYOUT = Template(
    "torch_backend.unsupported_layout",
    "{call}: unsupported layout {layout}; call all_reduce for each sparse tensor",
    "{call}：不支持布局 {layout}；请对每个稀疏张量分别调用 all_reduce",
)
WRONG_OUTPUT_LISTS = Template(
    "torch_backend.wrong_output_lists",
    "{call}: output lists should be equal to world size; found {found}, expected {size}",
    "{call}：输出列表数应等于 rank 数；实际为 {found}，应为 {size}",
)
WRONG_OUTPUT_COUNT = Template(
    "torch_backend.wrong_output_count",
    "{call}: invalid output size: {found} tensors in output list {rank}; expected {expected}",
    "{call}：输出大小无效：输出列表 {rank} 中有 {found} 个张量；应为 {expected} 个",
)
WRONG_OUTPUT_SHAPE = Template(
    "torch_backend.wrong_output_shape",
    "{call}: invalid size of output tensor at index {index} of list {rank}: {shape}; expected {expected}, as the "
    "input",
    "{call}：列表 {rank} 中下标 {index} 的输出张量大小 {shape} 无效；应与输入相同，为 {expected}",
)
WRONG_OUTPUT_TYPE = Template(
    "torch_backend.wrong_output_type",
    "{call}: invalid tensor type at index {index} of list {rank}: {dtype}; expected {expected}, as the input",
    "{call}：列表 {rank} 中下标 {index} 的张量类型 {dtype} 无效；应与输入相同，为 {expected}",
)
WRONG_TYPE_AT = Template(
    "torch_backend.wrong_type_at",
    "{call}: invalid tensor type at index {index}: {dtype}; expected {expected}",
    "{call}：下标 {index} 处的张量类型 {dtype} 无效；应为 {expected}",
)
WRONG_SHAPE_AT = Template(
    "torch_backend.wrong_shape_at",
    "{call}: invalid tensor size at index {index}: {shape}; expected {expected}",
    "{call}：下标 {index} 处的张量大小 {shape} 无效；应为 {expected}",
)
ONE_TENSOR_ONLY = Template(
    "torch_backend.one_tensor_only",
    "{call}: op={op} with {count} tensors on a rank; expected one tensor",
    "{call}：op={op} 时一个 rank 上有 {count} 个张量；应只有一个",
)
WRONG_GATHERED_COUNT = Template(
    "torch_backend.wrong_gathered_count",
    "{call}: invalid output tensor list at index {index}: {found} tensors; expected {expected}, {each} for each rank",
    "{call}：下标 {index} 的输出张量列表无效：有 {found} 个张量；应为 {expected} 个，每个 rank {each} 个",
)
WRONG_GATHERED_LISTS = Template(
    "torch_backend.wrong_gathered_lists",
    "{call}: {found} lists of outputs; expected {expected}, one for each input",
    "{call}：有 {found} 个输出列表；应为 {expected} 个，每个输入一个",
)
