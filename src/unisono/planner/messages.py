"""The messages of the planner, in English and Chinese: errors, reasons and remarks."""

from unisono.message import Template

# models.py, model_files.py
NO_MODEL = Template(
    "planner.no_model",
    "model: expected the name of a preset, a config.json, or numbers; found {name!r}; hint: {hint}",
    "model：应为预设名称、config.json 或数字；实际为 {name!r}；提示：{hint}",
)
MEANT_MODEL = Template("planner.meant_model", "did you mean {near!r}?", "是否想写 {near!r}？")
KNOWN_MODELS = Template(
    "planner.known_models",
    "the presets are {known}; numbers are written like layers=32,hidden=4096,heads=32,vocabulary=32000",
    "预设有 {known}；数字的写法如 layers=32,hidden=4096,heads=32,vocabulary=32000",
)
NOT_A_NUMBER = Template(
    "planner.not_a_number",
    "{where}, {key}: expected a whole number from 1 to {most}; found {found}; hint: write digits only",
    "{where} 的 {key}：应为 1 到 {most} 的整数；实际为 {found}；提示：只写数字",
)
NOT_A_FLAG = Template(
    "planner.not_a_flag",
    "{where}, {key}: expected yes or no; found {found!r}; hint: {key}=yes",
    "{where} 的 {key}：应为 yes 或 no；实际为 {found!r}；提示：{key}=yes",
)
NO_KEY = Template(
    "planner.no_key",
    "model: there is no key {key!r}; expected one of {known}; hint: {hint}",
    "模型没有 {key!r} 这一项；应为 {known} 之一；提示：{hint}",
)
TWICE = Template(
    "planner.twice",
    "model: expected each key once; found {key!r} twice; hint: delete one of them",
    "模型的每一项只能写一次；实际 {key!r} 出现两次；提示：删去其中一个",
)
KEY_EXAMPLE = Template(
    "planner.key_example",
    "write numbers such as layers=32,hidden=4096,heads=32,vocabulary=32000",
    "数字的写法如 layers=32,hidden=4096,heads=32,vocabulary=32000",
)
MISSING_KEY = Template(
    "planner.missing_key",
    "{source}: expected the key {key}; found only {found}; hint: add it, or give the model as numbers "
    "(layers=32,hidden=4096,heads=32,vocabulary=32000)",
    "{source}：缺少 {key}；只有 {found}；提示：补上这一项，或用数字描述模型"
    "（layers=32,hidden=4096,heads=32,vocabulary=32000）",
)
NOT_DIVISIBLE = Template(
    "planner.not_divisible",
    "model {name}: expected a number of {what} divisible by {heads}; found {found}; hint: change one of the two, or "
    "give head_features",
    "模型 {name}：{what} 应能被 {heads} 整除；实际为 {found}；提示：修改其中一个数，或给出 head_features",
)
NOT_JSON = Template(
    "planner.not_json",
    "{path}: expected the config.json of a Hugging Face model; found {found}; hint: pass the path of the file or of "
    "its folder",
    "{path}：应为 Hugging Face 模型的 config.json；实际为 {found}；提示：给出该文件或其所在目录的路径",
)
NESTED = Template("planner.nested", "lists that are nested too deeply", "嵌套过深的列表")
NOT_MODELLED = Template(
    "planner.not_modelled",
    "{path}, {key}: expected a decoder of equal layers with ordinary attention; found {what}, which the planner does "
    "not model; hint: give a similar model as numbers (layers=32,hidden=4096,heads=32,vocabulary=32000)",
    "{path} 的 {key}：应为各层相同、使用普通注意力的解码器；实际含有{what}，规划器不支持；"
    "提示：用数字描述一个相近的模型（layers=32,hidden=4096,heads=32,vocabulary=32000）",
)
ENCODER_DECODER = Template("planner.encoder_decoder", "an encoder with a decoder", "编码器加解码器")
LATENT_ATTENTION = Template("planner.latent_attention", "multi-head latent attention", "多头潜在注意力（MLA）")
SHARED_EXPERTS = Template("planner.shared_experts", "shared experts", "共享专家")
STATE_SPACE = Template("planner.state_space", "state-space layers", "状态空间层")

# clusters.py
NO_MACHINE = Template(
    "planner.no_machine",
    "machine: expected one of {known}; found {name!r}; hint: {hint}",
    "machine：应为 {known} 之一；实际为 {name!r}；提示：{hint}",
)
NO_PROGRAM = Template(
    "planner.no_program",
    "program: expected one of {known}; found {name!r}; hint: {hint}",
    "program：应为 {known} 之一；实际为 {name!r}；提示：{hint}",
)
NO_KIND = Template(
    "planner.no_kind",
    "kind: expected one of {known}, or a Kind; found {name!r}; hint: {hint}",
    "kind：应为 {known} 之一，或一个 Kind；实际为 {name!r}；提示：{hint}",
)
NO_CLUSTER = Template(
    "planner.no_cluster",
    'cluster: expected a Cluster; found {found}; hint: pass gpus=64, network="dgx-h100", or find_cluster(...)',
    'cluster：应为 Cluster；实际为 {found}；提示：写 gpus=64, network="dgx-h100"，或使用 find_cluster(...)',
)
NO_SUCH_NETWORK = Template(
    "planner.no_such_network",
    "network: expected a Network, the name of a preset, or the path of a network file; found {found}; hint: "
    "`unisono list --networks` lists the presets",
    "network：应为 Network、预设名称或网络文件的路径；实际为 {found}；提示：`unisono list --networks` 列出全部预设",
)
NAMES_LISTED = Template("planner.names_listed", "choose one of these names", "请从这些名称中选择")
OUT_OF_RANGE = Template(
    "planner.out_of_range",
    "{what}: expected {least} to {most}; found {found}; hint: pass another {what}",
    "{what}：应在 {least} 到 {most} 之间；实际为 {found}；提示：换一个 {what}",
)
NOT_A_QUANTITY = Template(
    "planner.not_a_quantity",
    "{what}: expected a number with a unit; found {found!r}; hint: write it like {example}",
    "{what}：应为带单位的数字；实际为 {found!r}；提示：写法如 {example}",
)

# enumeration.py
TOKENS_TOO_FEW = Template(
    "planner.tokens_too_few",
    "tokens: expected at least one sequence of {sequence} per step; found {tokens}; hint: pass more tokens, or a "
    "shorter sequence",
    "tokens：每步至少应有一个长度为 {sequence} 的序列；实际为 {tokens}；提示：增加 token 数，或缩短序列",
)
NOTHING_ADMISSIBLE = Template(
    "planner.nothing_admissible",
    "gpus: expected a number that data, tensor and pipeline parallelism can divide among {heads} heads, {layers} "
    "layers and {sequences} sequences per step; found {gpus}; hint: pass a number of GPUs with small factors, or "
    "another number of tokens per step",
    "gpus：应能由数据、张量和流水线并行按 {heads} 个注意力头、{layers} 层和每步 {sequences} 个序列整除；"
    "实际为 {gpus}；提示：换一个因子较小的 GPU 数，或调整每步的 token 数",
)
NOTHING_FITS = Template(
    "planner.nothing_fits",
    "memory: expected a combination that fits into {usable} of {memory} per GPU; found none among {count}, the "
    "smallest needs {least} ({smallest}); hint: pass more GPUs or more memory",
    "memory：应有组合放得进每个 GPU {memory} 中可用的 {usable}；{count} 种组合都放不进，"
    "最小的需要 {least}（{smallest}）；"
    "提示：增加 GPU 数或显存",
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
    "planner.changes_nothing",
    "even with {change}, the first combination would stay first",
    "即使{change}，第一名也不变",
)
FAR_FASTER = Template(
    "planner.far_faster", "links between hosts {times} times as fast", "主机间链路速度变为 {times} 倍"
)
FAR_SLOWER = Template("planner.far_slower", "links between hosts 1/{times} as fast", "主机间链路速度变为 1/{times}")
MORE_MEMORY = Template("planner.more_memory", "{times} times the memory", "显存变为 {times} 倍")
LESS_MEMORY = Template("planner.less_memory", "1/{times} of the memory", "显存变为 1/{times}")
MORE_TOKENS = Template("planner.more_tokens", "{times} times the tokens per step", "每步 token 数变为 {times} 倍")
FEWER_TOKENS = Template("planner.fewer_tokens", "1/{times} of the tokens per step", "每步 token 数变为 1/{times}")
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
    "({sequences} sequences of {sequence}), program {program}",
    "{model}：{parameters} 个参数，{network} 上的 {gpus} 个 {machine}，每步 {tokens} 个 token"
    "（{sequences} 个长度为 {sequence} 的序列），训练程序 {program}",
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

# configurations.py
BAD_CONFIGURATION = Template(
    "planner.bad_configuration",
    "configuration, {key}: expected {expected}; found {found}; hint: admissible(model, gpus, sequences) yields "
    "all combinations that fit the model",
    "configuration 的 {key}：应为 {expected}；实际为 {found}；"
    "提示：admissible(model, gpus, sequences) 给出适合模型的全部组合",
)

# calls.py
NOT_A_PARALLEL_TRANSFORMER = Template(
    "planner.not_a_parallel_transformer",
    "model: expected a dense model whose MLP has two matrices and four times the features, as "
    "unisono.parallel.ParallelTransformer has; found {name}; hint: gpt2 is such a model",
    "model：应为稠密模型，其 MLP 有两个矩阵、内部宽度为特征数的四倍，"
    "与 unisono.parallel.ParallelTransformer 一致；实际为 {name}；提示：gpt2 就是这样的模型",
)
NOT_SPLIT = Template(
    "planner.not_split",
    "{count} ({what}) cannot be divided among {tp} tensor-parallel ranks; expected a multiple",
    "{what} 为 {count}，不能平均分给 {tp} 个张量并行 rank；应为其倍数",
)
NOT_IN_PARALLEL = Template(
    "planner.not_in_parallel",
    "--calls: expected the first combination to be one that unisono.parallel offers, without pipelines, "
    "recomputation or experts; found {configuration}; hint: pass fewer GPUs or a smaller model",
    "--calls：第一名应为 unisono.parallel 提供的组合，它没有流水线、重算和专家；实际为 {configuration}；"
    "提示：减少 GPU 数，或换较小的模型",
)
