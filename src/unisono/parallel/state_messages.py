"""The messages of state dicts and of checkpoints in shards, in English and Chinese."""

from unisono.message import Template

# full_state.py
WRONG_WHOLE_LENGTH = Template(
    "parallel.wrong_whole_length",
    "load_full_state_dict: {name} has {found} rows along dimension {dim}; expected {expected}, the whole that is "
    "split over "
    "{size} ranks",
    "load_full_state_dict：{name} 在维度 {dim} 上有 {found} 行；应为 {expected} 行，即在 {size} 个 rank "
    "之间切分的整体",
)
SPLIT_NAME_MISSING = Template(
    "parallel.split_name_missing",
    "full_state_dict: {name} is split, but the state of the module has no such name; hint: pass the module inside "
    "the wrapper",
    "full_state_dict：{name} 已切分，但模块的状态中没有这个名称；建议：传入包装内部的模块",
)
# sharded_state.py
WRONG_KEYS = Template(
    "parallel.wrong_keys",
    "load_state_dict: missing keys: {missing}; unknown keys: {unknown}; expected the keys of the state of a "
    "{module}, or "
    "strict=False",
    "load_state_dict：缺少的键：{missing}；未知的键：{unknown}；应为 {module} 状态的键，或使用 strict=False",
)
NONE = Template("parallel.none", "none", "无")
WRONG_GROUP_COUNT = Template(
    "parallel.wrong_group_count",
    "the state of the optimiser has {found} parameter groups; expected {expected}, as the optimiser has",
    "优化器状态有 {found} 个参数组；应为 {expected} 个，与优化器一致",
)
WRONG_SHAPE = Template(
    "parallel.wrong_shape",
    "load_state_dict: {name} has the shape {found}; expected {expected}",
    "load_state_dict：{name} 的形状为 {found}；应为 {expected}",
)
# shard_files.py
FOLDER_UNUSABLE = Template(
    "parallel.folder_unusable", "save_shards: {folder} cannot be used", "save_shards：无法使用 {folder}"
)
NOTHING_SAVED = Template(
    "parallel.nothing_saved",
    "save_shards: nothing was saved, and the previous contents of {folder} are unchanged",
    "save_shards：没有保存任何内容，{folder} 原有的内容保持不变",
)
NOT_RENAMED = Template(
    "parallel.not_renamed",
    "save_shards: {folder} holds the new save, but a file could not be renamed to its final name",
    "save_shards：{folder} 中已是新保存的内容，但有一个文件未能改成最终的名称",
)
NOT_LOADED = Template("parallel.not_loaded", "load_shards: {folder} was not loaded", "load_shards：没有加载 {folder}")
REPORTED_BY_RANK = Template(
    "parallel.reported_by_rank", "{what}; rank {rank} reports: {problem}", "{what}；rank {rank} 报告：{problem}"
)
SAVED_WHILE_LOADING = Template(
    "parallel.saved_while_loading",
    "load_shards: another save was written to {folder} while it was being loaded; load again",
    "load_shards：加载 {folder} 期间有新的内容保存到其中；请重新加载",
)
ONE_OTHER_PARAMETER = Template(
    "parallel.one_other_parameter",
    "load_shards: a parameter in {folder} does not match the model: {name!r}, expected {expected}, found {found}; "
    "hint: "
    "load a checkpoint of the same model",
    "load_shards：{folder} 中有 1 个参数与模型不符：{name!r}，应为 {expected}，实际为 {found}；建议："
    "加载同一模型的检查点",
)
OTHER_PARAMETERS = Template(
    "parallel.other_parameters",
    "load_shards: {count} parameters in {folder} do not match the model; the first is {name!r}, expected "
    "{expected}, found "
    "{found}; hint: load a checkpoint of the same model",
    "load_shards：{folder} 中有 {count} 个参数与模型不符；第一个是 {name!r}，应为 {expected}，实际为 {found}；"
    "建议：加载同一模型的检查点",
)
SHAPE = Template("parallel.shape", "shape {shape}", "形状 {shape}")
NO_SUCH_PARAMETER = Template("parallel.no_such_parameter", "no such parameter", "没有此参数")
OPTIMIZER_STATES_DIFFER = Template(
    "parallel.optimizer_states_differ",
    "load_shards: the optimiser state of {name!r} differs from that of {first!r}, and both are now in unit {unit!r}; "
    "expected one state (steps, averages) for all parameters of a unit; hint: divide the model into the units it "
    "had when "
    "it was saved",
    "load_shards：{name!r} 与 {first!r} 的优化器状态不同，而二者现在同属单元 {unit!r}；"
    "一个单元的所有参数应有相同的状态（步数、平均值）；建议：按保存时的单元划分模型",
)
# save_folder.py
MANIFEST_UNREADABLE = Template(
    "parallel.manifest_unreadable",
    "load_shards: {path} cannot be read ({error}); hint: restore it, or remove it if the shards next to it all "
    "belong to "
    "one save",
    "load_shards：无法读取 {path}（{error}）；建议：恢复该文件；如果旁边的分片都属于同一次保存，也可将其删除",
)
SHARD_MISSING = Template(
    "parallel.shard_missing",
    "load_shards: {folder} has {names}; expected one file for each of the {size} ranks of save {save}, but "
    "{missing} is "
    "missing or belongs to another save; hint: restore it, or save again",
    "load_shards：{folder} 中有 {names}；编号为 {save} 的保存应包含 {size} 个 rank 各一个文件，但 {missing} "
    "缺失或属于另一次保存；建议：恢复该文件，或重新保存",
)
SAVED_TOO_OFTEN = Template(
    "parallel.saved_too_often",
    "load_shards: {folder} was saved to {attempts} times while it was being read; load again",
    "load_shards：读取 {folder} 期间，它又被保存了 {attempts} 次；请重新加载",
)
NO_SHARDS = Template("parallel.no_shards", "no shards", "没有分片")
NO_SHARDS_IN_FOLDER = Template(
    "parallel.no_shards_in_folder",
    "load_shards: there are no shards in {folder}{reason}; expected files shard-0-of-N.pt, ... and {manifest}",
    "load_shards：{folder} 中没有分片{reason}；应有文件 shard-0-of-N.pt、…… 和 {manifest}",
)
SAVE_INTERRUPTED = Template(
    "parallel.save_interrupted", "; a save was interrupted before it was complete", "；一次保存在完成之前被中断"
)
NOT_ONE_RUN = Template(
    "parallel.not_one_run",
    "load_shards: {folder} has {names}; expected one file for each of the ranks of one run",
    "load_shards：{folder} 中有 {names}；应为同一次运行中每个 rank 各一个文件",
)
DIFFERENT_SAVES = Template(
    "parallel.different_saves",
    "load_shards: {folder} has {names}, but no {manifest}; the file of rank {rank} belongs to another save than "
    "that of "
    "rank 0: they differ in {fact!r}; hint: restore the files of one save",
    "load_shards：{folder} 中有 {names}，但没有 {manifest}；rank {rank} 的文件与 rank 0 的不属于同一次保存：二者的 "
    "{fact!r} 不同；"
    "建议：恢复同一次保存的文件",
)
SHARD_UNREADABLE = Template(
    "parallel.shard_unreadable",
    "load_shards: {path} cannot be read: {error}",
    "load_shards：无法读取 {path}：{error}",
)
