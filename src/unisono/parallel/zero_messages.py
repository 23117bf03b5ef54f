"""The messages of Zero: stages, units, written parameters and optimisers, in English and Chinese."""

from unisono.message import Template

# zero.py
WRONG_STAGE = Template(
    "parallel.wrong_stage",
    "Zero: stage={stage!r}; expected 1, 2 or 3; hint: to shard nothing (stage 0), use DataParallel",
    "Zero：stage={stage!r}；应为 1、2 或 3；建议：不分片（第 0 阶段）请使用 DataParallel",
)
FROZEN_LATER = Template(
    "parallel.frozen_later",
    "Zero: parameter {name!r} was trainable when the module was wrapped and is frozen now; hint: freeze parameters "
    "before "
    "wrapping the module",
    "Zero：参数 {name!r} 在包装模块时可训练，现在被冻结；建议：在包装模块之前冻结参数",
)
THAWED_LATER = Template(
    "parallel.thawed_later",
    "Zero: parameter {name!r} was frozen when the module was wrapped and is trainable now; hint: unfreeze "
    "parameters before "
    "wrapping the module",
    "Zero：参数 {name!r} 在包装模块时处于冻结状态，现在变为可训练；建议：在包装模块之前解除冻结",
)
NOT_AN_OPTIMIZER = Template(
    "parallel.not_an_optimizer",
    "Zero: optimizer= returned a {kind}; expected a function that takes the shards and returns a "
    "torch.optim.Optimizer of "
    "them",
    "Zero：optimizer= 返回了 {kind}；应为接收分片并返回其 torch.optim.Optimizer 的函数",
)
ONE_FOREIGN_PARAMETER = Template(
    "parallel.one_foreign_parameter",
    "Zero: the optimiser has a parameter of shape {shape} that is not a shard; expected only the shards passed to "
    "the "
    "optimizer function, because ranks would update other parameters differently",
    "Zero：优化器中有一个形状为 {shape} 的参数不是分片；应只包含传给 optimizer 函数的分片，"
    "否则各 rank 会对其他参数做不同的更新",
)
FOREIGN_PARAMETERS = Template(
    "parallel.foreign_parameters",
    "Zero: the optimiser has {count} parameters that are not shards, the first of shape {shape}; expected only the "
    "shards "
    "passed to the optimizer function, because ranks would update other parameters differently",
    "Zero：优化器中有 {count} 个参数不是分片，第一个的形状为 {shape}；应只包含传给 optimizer 函数的分片，"
    "否则各 rank 会对其他参数做不同的更新",
)
PLAIN_GRAD_SCALER = Template(
    "parallel.plain_grad_scaler",
    "Zero: a GradScaler sees the gradients of one shard only, so ranks would skip different steps; hint: use "
    "unisono.parallel.ShardedGradScaler(zero) instead",
    "Zero：GradScaler 只能看到一个分片的梯度，各 rank 会跳过不同的步；建议：改用 "
    "unisono.parallel.ShardedGradScaler(zero)",
)
STATE_DICT_ARGUMENTS = Template(
    "parallel.state_dict_arguments",
    "Zero: state_dict() takes no arguments; hint: wrap the outermost module in Zero",
    "Zero：state_dict() 不接受参数；建议：用 Zero 包装最外层的模块",
)
CANNOT_MOVE_SHARDS = Template(
    "parallel.cannot_move_shards",
    "Zero: a sharded module cannot be moved or cast; hint: move or cast the module before wrapping it",
    "Zero：已分片的模块不能移动设备或转换类型；建议：在包装模块之前完成",
)
# grad_scaler.py
FOREIGN_OPTIMIZER = Template(
    "parallel.foreign_optimizer",
    "ShardedGradScaler: found a {kind}; expected zero.optimizer of the Zero that was passed to the scaler",
    "ShardedGradScaler：实际为 {kind}；应为创建它时所传入的 Zero 的 zero.optimizer",
)
# absent_uses.py, unit_hooks.py, unit_buffers.py, units.py
USED_OUTSIDE_UNIT = Template(
    "parallel.used_outside_unit",
    "Zero: parameter {name!r} was used outside the forward of its unit, {unit!r}, where it is not whole (stage 3); "
    "hint: "
    "use it only inside, pass the module that uses it as a unit (units=...), or use stage 2",
    "Zero：参数 {name!r} 在其单元 {unit!r} 的 forward 之外被使用，而此时它并不完整（第 3 阶段）；"
    "建议：只在单元内使用它，或把使用它的模块设为单元（units=...），或使用第 2 阶段",
)
UNIT_NOT_CALLED = Template(
    "parallel.unit_not_called",
    "Zero: parameters of unit {unit!r} were used, but the forward of the unit was not called, so they were not "
    "whole (stage "
    "3) and the result is NaN; hint: call the unit, pass the module that uses its parameters as a unit, or use "
    "stage 2",
    "Zero：单元 {unit!r} 的参数被使用，但没有调用该单元的 forward，因此参数不完整（第 3 阶段），结果为 NaN；"
    "建议：调用该单元，或把使用其参数的模块设为单元，或使用第 2 阶段",
)
BACKWARD_RAISED = Template(
    "parallel.backward_raised",
    "Zero: an exception ended the last backward pass on this rank, and the other ranks wait for what it did not "
    "send; "
    "restart all ranks",
    "Zero：本 rank 的上一次反向传播因异常中止，其他 rank 在等待它尚未发送的数据；请重新启动所有 rank",
)
NO_TENSOR_IN_OUTPUT = Template(
    "parallel.no_tensor_in_output",
    "Zero: unit {unit} ({module}) returned a {kind} in which no tensor was found; expected a tensor, or tuples, "
    "lists, "
    "dicts or dataclasses of tensors",
    "Zero：单元 {unit}（{module}）返回的 {kind} 中没有找到张量；应为张量，或由张量组成的 tuple、list、dict 或 "
    "dataclass",
)
BUFFER_IN_USE = Template(
    "parallel.buffer_in_use",
    "Zero: unit {unit} is still running and its buffer is needed: its forward called another unit that is not part "
    "of its "
    "module; hint: make only one of the two a unit",
    "Zero：单元 {unit} 仍在运行，而它的缓冲区要让给别的单元：它的 forward 调用了另一个不属于其模块的单元；建议："
    "两者中只把一个设为单元",
)
WRITTEN_IN_STAGE_3 = Template(
    "parallel.written_in_stage_3",
    "Zero: {parameter} was written to, or given other memory, after the module was wrapped; stage 3 rebuilds it "
    "from shards "
    "each time it is needed, so the change would be lost; hint: use zero.load_state_dict(), change the module before "
    "wrapping it, or use stage 2",
    "Zero：{parameter} 在模块包装之后被写入或换了内存；第 3 阶段每次使用时都由分片重建它，改动会丢失；"
    "建议：使用 zero.load_state_dict()，或在包装之前修改模块，或使用第 2 阶段",
)
PARAMETER = Template("parallel.parameter", "parameter {name!r}", "参数 {name!r}")
PARAMETER_DATA = Template(
    "parallel.parameter_data", "a parameter (through parameter.data)", "某个参数（通过 parameter.data）"
)
NOT_A_PART = Template(
    "parallel.not_a_part",
    "units: {kinds} is not part of the {module} to be sharded",
    "units：{kinds} 不是待分片的 {module} 的一部分",
)
# writes.py, sharded_parameter.py, zero_reducer.py
OTHER_MEMORY = Template(
    "parallel.other_memory",
    "Zero: parameter {name!r} was given other memory after the module was wrapped (parameter.data = ..., or a cast "
    "of the "
    "module) and would not be updated; hint: write the values into it (parameter.copy_() under torch.no_grad()), or "
    "change "
    "the module before wrapping it",
    "Zero：参数 {name!r} 在模块包装之后换了内存（parameter.data = ... 或转换了模块的类型），不会被更新；"
    "建议：把值写入参数（在 torch.no_grad() 下用 parameter.copy_()），或在包装之前修改模块",
)
GRADIENT_IN_SHARDS = Template(
    "parallel.gradient_in_shards",
    "Zero: the gradient of {name!r} is in shards, one on each rank, and cannot be read or set as a whole; hint: use "
    "zero.clip_grad_norm(), zero.step() and zero.zero_grad(), or stage=1, which keeps gradients whole",
    "Zero：{name!r} 的梯度以分片形式分布在各 rank 上，不能整体读取或设置；"
    "建议：使用 zero.clip_grad_norm()、zero.step() 和 zero.zero_grad()，或使用保留完整梯度的 stage=1",
)
NOT_AVERAGED = Template(
    "parallel.not_averaged",
    "Zero: the gradients of unit {unit!r} are those of rank {rank} alone and were not averaged: their backward pass "
    "ran "
    "inside no_sync(), or did not go through the forward of this Zero; hint: run the last backward pass before an "
    "update "
    "outside no_sync(), or call zero_grad()",
    "Zero：单元 {unit!r} 的梯度只是 rank {rank} 自己的，没有求平均：其反向传播在 no_sync() 内进行，"
    "或没有经过此 Zero 的 forward；建议：更新前的最后一次反向传播应在 no_sync() 之外进行，或调用 zero_grad()",
)
# elementwise.py
OPTIMIZER_NOT_TRIED = Template(
    "parallel.optimizer_not_tried",
    "Zero: {name} could not be tried on a vector of {count} elements ({error}); expected an optimiser that can be "
    "created "
    "again from its defaults and updates a vector in step(); hint: if it treats every element independently, pass "
    "check_optimizer=False",
    "Zero：无法在 {count} 个元素的向量上试用 {name}（{error}）；应为可由其默认值重新创建、并在 step() "
    "中更新向量的优化器；"
    "建议：如果它对每个元素独立处理，请传入 check_optimizer=False",
)
NOT_ELEMENTWISE = Template(
    "parallel.not_elementwise",
    "Zero: {name} gives a part of a vector other values ({part}) than the whole vector ({whole}), so it cannot "
    "update "
    "shards; hint: use an optimiser that treats every element independently (SGD, Adam, AdamW, RMSprop), or "
    "DataParallel; "
    "if this one does so after all, pass check_optimizer=False",
    "Zero：{name} 对向量的一部分给出的值（{part}）与对整个向量给出的值（{whole}）不同，因此不能更新分片；"
    "建议：使用对每个元素独立处理的优化器（SGD、Adam、AdamW、RMSprop），或使用 DataParallel；"
    "如果该优化器确实如此，请传入 check_optimizer=False",
)
AUTO_WITH_FEEDBACK = Template(
    "parallel.auto_with_feedback",
    "Zero: error_feedback cannot be combined with codec={codec}: if a call uses no codec, nothing may be rounded; "
    "expected a codec that is always used, or no error_feedback",
    "Zero：error_feedback 不能与 codec={codec} 一起使用：调用可能不使用编解码器，此时不能做任何舍入；"
    "应指定总是使用的编解码器，或不用 error_feedback",
)
