"""The messages of the planner, in English and Chinese: errors, reasons and remarks."""

from unisono.message import Template

# models.py, model_files.py
NO_MODEL = Template(
    "planner.no_model",
    "there is no model {name!r}; {hint}",
    "没有名为 {name!r} 的模型；{hint}",
)
MEANT_MODEL = Template("planner.meant_model", "did you mean {near!r}?", "是否想写 {near!r}？")
KNOWN_MODELS = Template(
    "planner.known_models",
    "expected a preset ({known}), a config.json, or numbers such as layers=32,hidden=4096,heads=32,vocabulary=32000",
    "应为预设模型（{known}）、一个 config.json 文件，或 layers=32,hidden=4096,heads=32,vocabulary=32000 这样的数字",
)
NOT_A_NUMBER = Template(
    "planner.not_a_number",
    "model, {key}: expected a whole number, 1 or more; found {found}",
    "模型的 {key}：应为不小于 1 的整数；实际为 {found}",
)
NO_KEY = Template(
    "planner.no_key",
    "model: there is no key {key!r}; expected one of {known}",
    "模型没有 {key!r} 这一项；应为 {known} 之一",
)
MISSING_KEY = Template(
    "planner.missing_key",
    "{source}: expected the key {key}; found only {found}",
    "{source}：缺少 {key}；只有 {found}",
)
NOT_DIVISIBLE = Template(
    "planner.not_divisible",
    "model {name}: {hidden} features cannot be divided among {heads} heads",
    "模型 {name}：{hidden} 个特征不能平均分给 {heads} 个注意力头",
)
NOT_JSON = Template(
    "planner.not_json",
    "{path}: expected the config.json of a Hugging Face model; found {found}",
    "{path}：应为 Hugging Face 模型的 config.json；实际为 {found}",
)

# clusters.py
NO_MACHINE = Template(
    "planner.no_machine",
    "there is no accelerator {name!r}; expected one of {known}",
    "没有名为 {name!r} 的加速器；应为 {known} 之一",
)
NO_PROGRAM = Template(
    "planner.no_program",
    "there is no program {name!r}; expected one of {known}",
    "没有名为 {name!r} 的训练程序；应为 {known} 之一",
)
OUT_OF_RANGE = Template(
    "planner.out_of_range",
    "{what}: expected {least} to {most}; found {found}",
    "{what}：应在 {least} 到 {most} 之间；实际为 {found}",
)
NOT_A_QUANTITY = Template(
    "planner.not_a_quantity",
    "{what}: expected a number with a unit, such as {example}; found {found!r}",
    "{what}：应为带单位的数字，例如 {example}；实际为 {found!r}",
)

# enumeration.py
TOKENS_TOO_FEW = Template(
    "planner.tokens_too_few",
    "{tokens} tokens per step are less than one sequence of {sequence}; hint: pass --tokens or --sequence",
    "每步 {tokens} 个 token 不足一个长度为 {sequence} 的序列；提示：用 --tokens 或 --sequence 指定",
)
NOTHING_ADMISSIBLE = Template(
    "planner.nothing_admissible",
    "no combination divides {gpus} GPUs, {layers} layers, {heads} heads and {sequences} sequences per step; "
    "hint: pass a number of GPUs with small factors, or another --tokens",
    "没有任何组合能同时整除 {gpus} 个 GPU、{layers} 层、{heads} 个注意力头和每步 {sequences} 个序列；"
    "提示：换一个因子较小的 GPU 数，或调整 --tokens",
)
NOTHING_FITS = Template(
    "planner.nothing_fits",
    "none of {count} combinations fits into {usable} of {memory} per GPU; the smallest needs {least} ({smallest}); "
    "hint: pass more GPUs or --memory",
    "{count} 种组合都放不进每个 GPU {memory} 中可用的 {usable}；最小的需要 {least}（{smallest}）；"
    "提示：增加 GPU 数或 --memory",
)

# ranking.py
SLOWER = Template(
    "planner.slower",
    "{runner_up} is {percent} slower than {best}: {reasons}",
    "{runner_up} 比 {best} 慢 {percent}：{reasons}",
)
MORE_OF = Template("planner.more_of", "{time} more for {part}", "{part}多 {time}")
LESS_OF = Template("planner.less_of", "{time} less for {part}", "{part}少 {time}")
CHANGES = Template(
    "planner.changes",
    "with {change}, {configuration} would be first ({gain} tokens/s/GPU)",
    "若{change}，{configuration} 将排第一（{gain} token/s/GPU）",
)
CHANGES_NOTHING = Template(
    "planner.changes_nothing", "with {change}, the first stays first", "若{change}，第一名不变"
)
FAR_TWICE = Template("planner.far_twice", "links between hosts twice as fast", "主机间链路快一倍")
FAR_HALF = Template("planner.far_half", "links between hosts half as fast", "主机间链路慢一半")
MEMORY_TWICE = Template("planner.memory_twice", "twice the memory", "显存加倍")
TOKENS_TWICE = Template("planner.tokens_twice", "twice the tokens per step", "每步 token 数加倍")
PARTS = {
    "compute": Template("planner.part_compute", "computing (on the slowest stage)", "计算（最慢的一段）"),
    "recompute": Template("planner.part_recompute", "recomputing activations", "重算激活"),
    "launch": Template("planner.part_launch", "launching kernels", "启动内核"),
    "tensor": Template("planner.part_tensor", "tensor-parallel collectives", "张量并行的集合通信"),
    "expert": Template("planner.part_expert", "exchanging rows with experts", "与专家交换数据"),
    "pipeline": Template("planner.part_pipeline", "messages between stages", "流水线各段之间的消息"),
    "bubble": Template("planner.part_bubble", "the pipeline bubble", "流水线气泡"),
    "data": Template("planner.part_data", "gradients and parameters", "梯度与参数的通信"),
    "update": Template("planner.part_update", "the optimiser", "优化器更新"),
}

# cli/plan.py and the page
TITLE = Template(
    "planner.title",
    "{model}: {parameters} parameters, {gpus} x {machine} on {network}, {tokens} tokens per step "
    "({sequences} sequences of {sequence})",
    "{model}：{parameters} 个参数，{network} 上的 {gpus} 个 {machine}，每步 {tokens} 个 token"
    "（{sequences} 个长度为 {sequence} 的序列）",
)
COUNTS = Template(
    "planner.counts",
    "{admissible} combinations, {fitting} fit into {usable} of {memory} per GPU; the {shown} fastest:",
    "共 {admissible} 种组合，其中 {fitting} 种放得进每个 GPU {memory} 中可用的 {usable}；最快的 {shown} 种：",
)
MEMORY_PARTS = {
    "parameters": Template("planner.memory_parameters", "parameters", "参数"),
    "gradients": Template("planner.memory_gradients", "gradients", "梯度"),
    "optimizer": Template("planner.memory_optimizer", "optimiser", "优化器状态"),
    "activations": Template("planner.memory_activations", "activations", "激活"),
    "buffers": Template("planner.memory_buffers", "buffers of ZeRO", "ZeRO 的缓冲区"),
}
PAGE_TITLE = Template("planner.page_title", "{model} on {gpus} GPUs", "{gpus} 个 GPU 上的 {model}")
PAGE_TIME = Template("planner.page_time", "Where the time of a step goes", "一步的时间花在哪里")
PAGE_MEMORY = Template(
    "planner.page_memory",
    "Where the memory of a GPU goes (red line: {usable} may be filled)",
    "一个 GPU 的显存用在哪里（红线：可用 {usable}）",
)
PAGE_REMARKS = Template(
    "planner.page_remarks",
    "Why the runner-up is slower, and what would change the order",
    "第二名为何较慢，什么会改变名次",
)

# calls.py
NOT_A_PARALLEL_TRANSFORMER = Template(
    "planner.not_a_parallel_transformer",
    "model {name}: expected a dense model whose MLP has two matrices and four times the features, as "
    "unisono.parallel.ParallelTransformer has",
    "模型 {name}：应为稠密模型，其 MLP 有两个矩阵、内部宽度为特征数的四倍，"
    "与 unisono.parallel.ParallelTransformer 一致",
)
NOT_SPLIT = Template(
    "planner.not_split",
    "{count} ({what}) cannot be divided among {tp} tensor-parallel ranks; expected a multiple",
    "{what} 为 {count}，不能平均分给 {tp} 个张量并行 rank；应为其倍数",
)
NOT_IN_PARALLEL = Template(
    "planner.not_in_parallel",
    "{configuration}: unisono.parallel has no pipelines and no recomputation, and lists experts layer by layer",
    "{configuration}：unisono.parallel 不提供流水线和重算，专家的通信按层列出",
)
