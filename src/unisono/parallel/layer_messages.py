"""The messages of layers (tensor parallel, attention, vocabulary, batch norm, experts), in English and Chinese."""

from unisono.message import Template

# split.py, tensor.py, transformer.py
TOO_FEW_UNITS = Template(
    "parallel.too_few_units",
    "{location}: {count} {what} on {size} ranks; expected at least one for every rank; hint: use a group of at most "
    "{count} "
    "ranks",
    "{location}：{size} 个 rank 只有 {count} 个{what}；每个 rank 至少应有一个；建议：使用不超过 {count} 个 rank "
    "的通信组",
)
INPUTS = Template("parallel.inputs", "inputs", "输入")
OUTPUTS = Template("parallel.outputs", "outputs", "输出")
WORDS = Template("parallel.words", "words", "词")
HEADS = Template("parallel.heads", "heads", "注意力头")
UNITS_OF = Template("parallel.units_of", "units of {unit} {what}", "单位（每个含 {unit} 个{what}）")
UNEVEN_BLOCKS = Template(
    "parallel.uneven_blocks",
    "{location}: {features} {what}; expected a multiple of {multiple}: {blocks} x {unit} (blocks x unit)",
    "{location}：{features} 个{what}；应为 {multiple} 的倍数：{blocks} x {unit}（块数 x 单位）",
)
WRONG_INPUT_WIDTH = Template(
    "parallel.wrong_input_width",
    "{location}: an input with {found} features; expected {expected}",
    "{location}：输入有 {found} 个特征；应为 {expected} 个",
)
WRONG_INPUT_SHARE = Template(
    "parallel.wrong_input_share",
    "{location}: an input with {found} features; expected {expected}, this rank's share of {whole}",
    "{location}：输入有 {found} 个特征；应为 {expected} 个，即本 rank 在 {whole} 个特征中的份额",
)
WRONG_SEQUENCE_SHARD = Template(
    "parallel.wrong_sequence_shard",
    "{location}: a shard of {found} positions; expected {expected}, this rank's share of a sequence of {length} on "
    "{size} "
    "ranks",
    "{location}：分片有 {found} 个位置；应为 {expected} 个，即长度为 {length} 的序列分给 {size} 个 rank 后本 "
    "rank 的份额",
)
SEQUENCE_TOO_LONG = Template(
    "parallel.sequence_too_long",
    "ParallelTransformer: a sequence of {found} positions; expected at most {longest}",
    "ParallelTransformer：序列有 {found} 个位置；最多为 {longest} 个",
)
# attention.py
UNEVEN_HEADS = Template(
    "parallel.uneven_heads",
    "{location}: {features} features; expected a multiple of {heads} heads",
    "{location}：{features} 个特征；应为 {heads} 个注意力头的倍数",
)
UNSUPPORTED_ATTENTION = Template(
    "parallel.unsupported_attention",
    "ParallelAttention.from_attention: expected nn.MultiheadAttention with batch_first=True, keys and values as "
    "wide as "
    "queries, and no add_bias_kv",
    "ParallelAttention.from_attention：应为 batch_first=True、键和值与查询同宽且没有 add_bias_kv 的 "
    "nn.MultiheadAttention",
)
# vocabulary.py
WRONG_LOGITS = Template(
    "parallel.wrong_logits",
    "{location}: logits of shape {found}; expected {expected}: the shape of the targets, and this rank's share of "
    "{vocabulary} words",
    "{location}：logits 的形状为 {found}；应为 {expected}：目标的形状，加上本 rank 在 {vocabulary} 个词中的份额",
)
WRONG_REDUCTION = Template(
    "parallel.wrong_reduction",
    "{location}: reduction={reduction!r}; expected 'mean', 'sum' or 'none'",
    "{location}：reduction={reduction!r}；应为 'mean'、'sum' 或 'none'",
)
UNKNOWN_ID = Template(
    "parallel.unknown_id",
    "{location}: an id is {found}; expected 0 to {last}",
    "{location}：有一个 id 为 {found}；应在 0 到 {last} 之间",
)
UNKNOWN_TARGET = Template(
    "parallel.unknown_target",
    "{location}: a target is {found}; expected 0 to {last}",
    "{location}：有一个目标为 {found}；应在 0 到 {last} 之间",
)
# batchnorm.py
WRONG_NORM_INPUT = Template(
    "parallel.wrong_norm_input",
    "SyncBatchNorm {name!r}: input of shape {found}; expected rows × {features} features, and optionally more "
    "dimensions",
    "SyncBatchNorm {name!r}：输入形状为 {found}；应为 行 × {features} 个特征，可再有其他维度",
)
TOO_FEW_VALUES = Template(
    "parallel.too_few_values",
    "SyncBatchNorm {name!r}: values per feature on all ranks together: {found}; expected at least 2 for training",
    "SyncBatchNorm {name!r}：所有 rank 上每个特征共有 {found} 个值；训练至少需要 2 个",
)
LAZY_NORM = Template(
    "parallel.lazy_norm",
    "SyncBatchNorm.convert: {name!r} has no shape yet; call the module once on a batch first",
    "SyncBatchNorm.convert：{name!r} 尚无形状；请先用一个批次调用该模块一次",
)
# moe.py
WRONG_TOP_K = Template(
    "parallel.wrong_top_k",
    "{location}: top_k={top_k}; expected 1 to {count}, the number of experts",
    "{location}：top_k={top_k}；应在 1 到专家数 {count} 之间",
)
WRONG_CAPACITY_FACTOR = Template(
    "parallel.wrong_capacity_factor",
    "{location}: capacity_factor={factor}; expected None or a number above 0",
    "{location}：capacity_factor={factor}；应为 None 或大于 0 的数",
)
WRONG_CHOICE = Template(
    "parallel.wrong_choice",
    "{location}: {option}={found!r}; expected {first!r} or {second!r}",
    "{location}：{option}={found!r}；应为 {first!r} 或 {second!r}",
)
WRONG_EXPERT_OUTPUT = Template(
    "parallel.wrong_expert_output",
    "{location}: expert {number} returns shape {found} for rows of shape {expected}; expected the same shape",
    "{location}：专家 {number} 对形状为 {expected} 的输入返回形状 {found}；应返回相同的形状",
)
