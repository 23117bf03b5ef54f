"""The messages of groups, of the checks that all strategies share, and of DataParallel, in English and Chinese.

``zero_messages.py``, ``state_messages.py`` and ``layer_messages.py`` hold those of other subjects. ``location`` names
the strategy or the layer, and the rank where it is known.
"""

from unisono.message import Template

# group.py, over_torch.py
NOT_A_GROUP = Template(
    "parallel.not_a_group",
    "group={group}; expected a unisono.Communicator, a process group of torch.distributed, or None for torch's "
    "default group",
    "group={group}；应为 unisono.Communicator、torch.distributed 的进程组，或用 None 表示 torch 的默认进程组",
)
NO_PROCESS_GROUP = Template(
    "parallel.no_process_group",
    "there is no process group; hint: call torch.distributed.init_process_group() first, or give a "
    "unisono.Communicator",
    "没有进程组；建议：先调用 torch.distributed.init_process_group()，或传入 unisono.Communicator",
)
RANKS_NOT_ASCENDING = Template(
    "parallel.ranks_not_ascending",
    "split: the keys put the ranks in the order {members}; expected an ascending order, the only one that torch's "
    "groups have",
    "split：按 key 得到的 rank 顺序为 {members}；应为升序，torch 的进程组只支持升序",
)
NO_CODEC_IN_BACKEND = Template(
    "parallel.no_codec_in_backend",
    "codec={codec} on a process group of {backend}, which cannot encode; hint: use the backend unisono or a "
    "unisono.Communicator, or leave the codec out",
    "codec={codec} 用于 {backend} 的进程组，而该后端不支持编码；建议：使用 unisono 后端或 unisono.Communicator，"
    "或去掉 codec",
)

# mesh.py
NO_SUCH_AXIS = Template(
    "parallel.no_such_axis",
    "mesh: there is no axis {axis!r}; expected one of {axes}",
    "mesh：没有轴 {axis!r}；应为 {axes} 之一",
)
WRONG_AXIS_SIZE = Template(
    "parallel.wrong_axis_size",
    "mesh: {axis}={size!r}; expected a number of ranks, or -1 for all remaining ranks",
    "mesh：{axis}={size!r}；应为 rank 数，或用 -1 表示其余全部 rank",
)
RESERVED_AXIS_NAME = Template(
    "parallel.reserved_axis_name",
    "mesh: an axis cannot be called {axis!r}; choose another name",
    "mesh：轴不能命名为 {axis!r}；请换一个名称",
)
NO_AXES = Template(
    "parallel.no_axes",
    "mesh: no axes; expected at least one, such as mesh(group, dp=2, tp=2)",
    "mesh：没有指定轴；至少应有一个，例如 mesh(group, dp=2, tp=2)",
)
SEVERAL_OPEN_AXES = Template(
    "parallel.several_open_axes",
    "mesh: {axes} are -1; expected at most one",
    "mesh：{axes} 均为 -1；最多只能有一个",
)
WRONG_MESH_SIZE = Template(
    "parallel.wrong_mesh_size",
    "mesh: {product} needs {needed} ranks, the group has {size}; choose sizes whose product is {size}",
    "mesh：{product} 需要 {needed} 个 rank，而通信组有 {size} 个；请选择乘积为 {size} 的大小",
)
HOSTS_NOT_KNOWN = Template(
    "parallel.hosts_not_known",
    'replicate="hosts": the hosts of this process group are not known; hint: use a unisono.Communicator or the '
    "backend unisono, or pass the group of the shards and the group of the replicas",
    'replicate="hosts"：不知道该进程组的主机分布；建议：使用 unisono.Communicator 或 unisono 后端，'
    "或分别传入分片组和副本组",
)
UNEQUAL_HOSTS = Template(
    "parallel.unequal_hosts",
    'replicate="hosts": the hosts have {counts} ranks; expected the same number on every host; hint: pass the group '
    "of the shards and the group of the replicas",
    'replicate="hosts"：各主机的 rank 数为 {counts}；应当相同；建议：分别传入分片组和副本组',
)
WRONG_REPLICATE = Template(
    "parallel.wrong_replicate",
    'Zero(replicate={replicate!r}); expected a group, None or "hosts"',
    'Zero(replicate={replicate!r})；应为通信组、None 或 "hosts"',
)
MULTIPLE_OF = Template("parallel.multiple_of", "a multiple of {count}", "{count} 的倍数")

# overlap.py
NO_GROUP_FOR_ENTRY = Template(
    "parallel.no_group_for_entry",
    "replay: {collective} of {name!r} ran on {size} ranks{axis}; expected their group among the arguments",
    "replay：{name!r} 的 {collective} 的参与者是 {size} 个 rank{axis}；参数中应包含它们的通信组",
)
ON_AXIS = Template("parallel.on_axis", " of axis {axis!r}", "（轴 {axis!r}）")

# checks.py, agreement.py, structure.py
RANK = Template("parallel.rank", "rank {rank}", "rank {rank}")
RANKS = Template("parallel.ranks", "ranks {ranks}", "rank {ranks}")
LAZY_PARAMETER = Template(
    "parallel.lazy_parameter",
    "{location}: parameter {name!r} has no shape yet; call the module once on a batch before wrapping it",
    "{location}：参数 {name!r} 尚无形状；请在包装模块之前先用一个批次调用它一次",
)
NOTHING_TO_TRAIN = Template(
    "parallel.nothing_to_train",
    "{location}: {module} has nothing to train: {reason}; use the module without a wrapper",
    "{location}：{module} 没有可训练的内容：{reason}；请直接使用该模块，无需包装",
)
NO_PARAMETERS = Template("parallel.no_parameters", "it has no parameters", "它没有参数")
ALL_FROZEN = Template("parallel.all_frozen", "all its {count} parameters are frozen", "它的 {count} 个参数全部被冻结")
ITS_PARAMETER_FROZEN = Template("parallel.its_parameter_frozen", "its parameter is frozen", "它唯一的参数被冻结")
ONE_MODEL_DIFFERS = Template(
    "parallel.one_model_differs",
    "{location}: {ranks}'s model differs from rank 0's. First difference: expected {expected}, found {found} on rank "
    "{rank}; hint: create the same model with the same settings on every rank",
    "{location}：{ranks} 的模型与 rank 0 的不同。第一处差异：应为 {expected}，rank {rank} 实际为 {found}；"
    "建议：在每个 rank 上用相同的设置创建相同的模型",
)
MODELS_DIFFER = Template(
    "parallel.models_differ",
    "{location}: the models of {ranks} differ from rank 0's. First difference: expected {expected}, found {found} on "
    "rank {rank}; hint: create the same model with the same settings on every rank",
    "{location}：{ranks} 的模型与 rank 0 的不同。第一处差异：应为 {expected}，rank {rank} 实际为 {found}；"
    "建议：在每个 rank 上用相同的设置创建相同的模型",
)
NOTHING_MORE = Template("parallel.nothing_more", "nothing more", "没有其他内容")
VALUES_DIFFER = Template(
    "parallel.values_differ",
    "{location}: parameter {name!r}{more} has other values on {ranks} than on rank 0; hint: call "
    "torch.manual_seed() with "
    "the same number on every rank before creating the model, load the same checkpoint, or pass "
    "broadcast_parameters=True to start from rank 0's values",
    "{location}：参数 {name!r} 的值在 {ranks} 上与 rank 0 不同{more}；建议：在每个 rank 上用相同的种子调用 "
    "torch.manual_seed() 之后再创建模型，或加载同一个检查点，或传入 broadcast_parameters=True 以采用 rank 0 的值",
)
ONE_MORE_PARAMETER = Template("parallel.one_more_parameter", " (and 1 more parameter)", "（另有 1 个参数）")
MORE_PARAMETERS = Template("parallel.more_parameters", " (and {count} more parameters)", "（另有 {count} 个参数）")
UNIT_ORDER_DIFFERS = Template(
    "parallel.unit_order_differs",
    "{location}: rank {rank} ran the units {found}; expected the order of rank 0: {expected}. Stage 3 gathers every "
    "unit "
    "from all ranks; hint: run the same units on all ranks, or use stage 2",
    "{location}：rank {rank} 运行的单元为 {found}；应与 rank 0 的顺序相同：{expected}。"
    "第 3 阶段要从所有 rank 收集每个单元；建议：让所有 rank 运行相同的单元，或使用第 2 阶段",
)
GRADIENT_HAS_NAN = Template(
    "parallel.gradient_has_nan",
    "{location}: the gradient of {name!r} on rank {rank} has a NaN before averaging{more}; hint: inspect the input "
    "of that "
    "rank, and use torch.autograd.detect_anomaly()",
    "{location}：rank {rank} 上 {name!r} 的梯度在求平均之前含有 NaN{more}；建议：检查该 rank 的输入，"
    "并使用 torch.autograd.detect_anomaly()",
)
ON_ONE_OTHER_RANK = Template("parallel.on_one_other_rank", " (1 other rank has one, too)", "（另有 1 个 rank 也有）")
ON_OTHER_RANKS = Template(
    "parallel.on_other_ranks", " ({count} other ranks have one, too)", "（另有 {count} 个 rank 也有）"
)
DIFFERENT_LAYERS = Template(
    "parallel.different_layers",
    "rank 0 creates {expected}, rank {rank} creates {found}; expected the same layer on all ranks",
    "rank 0 创建 {expected}，rank {rank} 创建 {found}；所有 rank 应创建相同的层",
)
INITIAL_WEIGHTS_DIFFER = Template(
    "parallel.initial_weights_differ",
    "{location}: rank {rank}'s initial weights differ from rank 0's; expected the same whole on all ranks, of which "
    "each "
    "keeps its part; hint: call torch.manual_seed() with the same number on all ranks before creating the model",
    "{location}：rank {rank} 的初始权重与 rank 0 不同；所有 rank 的整体权重应相同，各自保留其中一部分；建议："
    "创建模型之前在所有 rank 上用相同的种子调用 torch.manual_seed()",
)
SETTINGS_DIFFER = Template(
    "parallel.settings_differ",
    "{location}: {setting}={expected} on rank 0, {found} on rank {rank}; expected the same on all ranks",
    "{location}：rank 0 上 {setting}={expected}，rank {rank} 上为 {found}；所有 rank 应相同",
)
PARAMETER_ADDED = Template(
    "parallel.parameter_added",
    "{location}: parameter {name!r} was added to the module after wrapping and would not be averaged over the ranks; "
    "hint: change the module before wrapping it, or change the values in place",
    "{location}：参数 {name!r} 在模块包装之后才加入，不会在 rank 之间求平均；建议：在包装之前修改模块，"
    "或就地修改参数的值",
)
PARAMETER_REMOVED = Template(
    "parallel.parameter_removed",
    "{location}: parameter {name!r} was removed from the module after wrapping; hint: change the module before "
    "wrapping "
    "it, or change the values in place",
    "{location}：参数 {name!r} 在模块包装之后被移除；建议：在包装之前修改模块，或就地修改参数的值",
)
PARAMETER_REPLACED = Template(
    "parallel.parameter_replaced",
    "{location}: parameter {name!r} was replaced in the module after wrapping, and the new one would not be "
    "averaged over "
    "the ranks; hint: change the module before wrapping it, or change the values in place",
    "{location}：参数 {name!r} 在模块包装之后被替换，新的参数不会在 rank 之间求平均；建议：在包装之前修改模块，"
    "或就地修改参数的值",
)

# ddp.py, ddp_reducer.py, buckets.py
WRONG_BUCKET_BYTES = Template(
    "parallel.wrong_bucket_bytes",
    "{location}: bucket_bytes={bucket_bytes!r}; expected a number of bytes, 1 or more",
    "{location}：bucket_bytes={bucket_bytes!r}；应为不小于 1 的字节数",
)
WRAPPED_TWICE = Template(
    "parallel.wrapped_twice",
    "{location}: the module, or a part of it, is already wrapped by {location}; wrap it once",
    "{location}：该模块或其一部分已被 {location} 包装；只需包装一次",
)
ALL_LOCAL = Template(
    "parallel.all_local",
    "{location}: every trained parameter of {module} is local, so nothing is averaged; use the module without a "
    "wrapper",
    "{location}：{module} 中可训练的参数全部是本地参数，没有需要求平均的内容；请直接使用该模块，无需包装",
)
PARAMETER_THAWED = Template(
    "parallel.parameter_thawed",
    "{location}: parameter {name!r} was frozen when the module was wrapped and is trainable now; unwrap() the "
    "module and "
    "wrap it again",
    "{location}：参数 {name!r} 在包装模块时处于冻结状态，现在变为可训练；请用 unwrap() 解除包装后重新包装",
)
BACKWARD_UNFINISHED = Template(
    "parallel.backward_unfinished",
    "{location}: on rank {rank} the last backward pass stopped after {reduced} of {count} buckets, and the other "
    "ranks wait "
    "for the rest; hint: if it raised an exception, restart all ranks; if parameters are unused under "
    "checkpoint(use_reentrant=True), pass use_reentrant=False",
    "{location}：rank {rank} 的上一次反向传播只完成了 {count} 个桶中的 {reduced} 个就中断了，其他 rank "
    "在等待其余的桶；建议：如果它抛出了异常，请重新启动所有 rank；如果 checkpoint(use_reentrant=True) "
    "中有未使用的参数，请改为 use_reentrant=False",
)
UPDATED_WITHOUT_AVERAGE = Template(
    "parallel.updated_without_average",
    "{location}: parameters of rank {rank} were updated after a backward pass inside no_sync(), whose gradients "
    "were not "
    "averaged; the ranks' parameters now differ; hint: run the last backward pass before an update outside "
    "no_sync(), and "
    "restart from a checkpoint",
    "{location}：rank {rank} 在 no_sync() 内反向传播之后更新了参数，而这些梯度没有求平均，各 rank "
    "的参数已经不一致；建议：更新前的最后一次反向传播应在 no_sync() 之外进行，并从检查点重新开始",
)
SECOND_DERIVATIVE = Template(
    "parallel.second_derivative",
    "{location}: backward(create_graph=True) is not supported, because gradients of gradients do not pass through "
    "{collective}; hint: use torch.autograd.grad() for the inner gradients",
    "{location}：不支持 backward(create_graph=True)，因为二阶梯度不经过 {collective}；建议：内层梯度请使用 "
    "torch.autograd.grad()",
)
REDUCER_GONE = Template(
    "parallel.reducer_gone",
    "{location}: the gradient of {name!r} is ready, but the {location} that averages it no longer exists; keep it "
    "for as "
    "long as you train, or call unwrap() before dropping it",
    "{location}：{name!r} 的梯度已就绪，但负责求平均的 {location} 已不存在；训练期间请保留它，或在释放之前调用 "
    "unwrap()",
)
GRADIENT_TWICE = Template(
    "parallel.gradient_twice",
    "{location}: the gradient of {name!r} arrived twice in one backward pass; expected once; hint: if several parts "
    "under "
    "checkpoint(use_reentrant=True) use it, pass use_reentrant=False; if the previous pass raised an exception, "
    "restart "
    "all ranks",
    "{location}：{name!r} 的梯度在一次反向传播中到达了两次；应只到达一次；建议：如果 checkpoint(use_reentrant=True) "
    "下有多个部分使用它，请改为 use_reentrant=False；如果上一次反向传播抛出了异常，请重新启动所有 rank",
)
ALREADY_AVERAGED = Template(
    "parallel.already_averaged",
    "{location}: parameter {name!r} already belongs to another {location}; wrap it once, or unwrap() the other one",
    "{location}：参数 {name!r} 已属于另一个 {location}；只需包装一次，或先对另一个调用 unwrap()",
)
SPARSE_GRADIENT = Template(
    "parallel.sparse_gradient",
    "{location}: the gradient of {name!r} is {layout}; expected a dense one; hint: create the embedding with "
    "sparse=False",
    "{location}：{name!r} 的梯度为 {layout}；应为稠密梯度；建议：创建 embedding 时使用 sparse=False",
)
