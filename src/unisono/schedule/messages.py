"""The sentences that the schedule package says: what is wrong with a program, its steps, its ops and its messages."""

from unisono.message import Template

# The program itself.
NOT_STEPS = Template(
    "schedule.not_steps",
    "the program returned {type}, not steps",
    "程序返回的是 {type}，而不是一系列步骤",
)
USE_YIELD = Template(
    "schedule.use_yield",
    "a program is a generator: write `yield` before each step",
    "程序是一个生成器：在每一步之前写 `yield`",
)
NOT_ENDED = Template(
    "schedule.not_ended",
    "the program has not ended after {limit} steps",
    "程序执行了 {limit} 步仍未结束",
)
END_THE_LOOP = Template(
    "schedule.end_the_loop",
    "end the loop, or declare @algorithm(..., step_limit=N) if the program really is that long",
    "请结束循环；如果程序确实这么长，请声明 @algorithm(..., step_limit=N)",
)
PROGRAM_RAISED = Template("schedule.program_raised", "the program raised {error}", "程序抛出了 {error}")
AT_LINE = Template("schedule.at_line", "line {line} of {file}: {code}", "{file} 第 {line} 行：{code}")
FIX_PROGRAM = Template(
    "schedule.fix_program",
    "fix the program for this rank and size",
    "请修正程序在该 rank 编号和 rank 数下的行为",
)

# Steps and ops.
NOT_A_STEP = Template("schedule.not_a_step", "this is not a step", "这不是一个步骤")
NOT_AN_OP = Template("schedule.not_an_op", "this is not an op", "这不是一个动作")
WRITE_A_STEP = Template(
    "schedule.write_a_step",
    "yield an op, send(0, dst=1), or several separated by commas; to run another program: yield from "
    "program(...); to yield all ops of a generator at once: yield *(send(0, dst=r) for r in others),",
    "请 yield 一个动作，如 send(0, dst=1)，或用逗号分隔的多个动作；要执行另一个程序：yield from program(...)；"
    "要一次给出生成器里的全部动作：yield *(send(0, dst=r) for r in others),",
)
WRITE_AN_OP = Template(
    "schedule.write_an_op",
    "write send(chunk, dst=rank), recv(chunk, src=rank), recv_reduce(chunk, src=rank), copy(chunk, to=slot), "
    "combine(chunk, into=slot)",
    "请写 send(chunk, dst=rank)、recv(chunk, src=rank)、recv_reduce(chunk, src=rank)、copy(chunk, to=slot) 或 "
    "combine(chunk, into=slot)",
)
NO_SUCH_OP = Template("schedule.no_such_op", "there is no op {kind}", "没有名为 {kind} 的动作")
ONE_OF = Template("schedule.one_of", "one of {names}", "{names} 之一")
DIFFERENT_COUNTS = Template(
    "schedule.different_counts",
    "the two sides have different numbers of chunks",
    "两边的块数不同",
)
NO_CHUNK_NAMED = Template("schedule.no_chunk_named", "the op names no chunk", "该动作没有指定任何块")
LEAVE_OP_OUT = Template("schedule.leave_op_out", "leave the op out of the step", "请从这一步中去掉该动作")
CHUNK_NAMED_TWICE = Template(
    "schedule.chunk_named_twice", "the op names the same chunk twice", "该动作重复指定了同一块"
)
NO_SUCH_CHUNK = Template("schedule.no_such_chunk", "there is no chunk {chunk}", "没有第 {chunk} 块")
DECLARED_CHUNKS = Template(
    "schedule.declared_chunks", "one of the declared chunks, 0 to {last}", "已声明的块之一：0 到 {last}"
)
DECLARE_MORE = Template(
    "schedule.declare_more",
    "declare more, @algorithm(..., chunks=one_per_rank, scratch=), or wrap around with % size",
    "请声明更多的块：@algorithm(..., chunks=one_per_rank, scratch=)，或用 % size 绕回",
)
NO_SUCH_RANK = Template("schedule.no_such_rank", "there is no rank {rank}", "没有 rank {rank}")
RANK_RANGE = Template("schedule.rank_range", "a rank from 0 to {last}", "0 到 {last} 之间的 rank 编号")
WRAP_AROUND = Template(
    "schedule.wrap_around",
    "wrap around with % size, or stop at the end; in mapped(...), list only ranks that exist",
    "请用 % size 绕回，或在末尾停止；mapped(...) 中只能列出存在的 rank",
)
TALKS_TO_ITSELF = Template(
    "schedule.talks_to_itself",
    "a rank cannot send to or receive from itself",
    "rank 不能向自己发送，也不能从自己接收",
)
USE_LOCAL_OP = Template(
    "schedule.use_local_op",
    "use copy(chunk, to=...) or combine(chunk, into=...) for data that stays on this rank",
    "留在本 rank 的数据请用 copy(chunk, to=...) 或 combine(chunk, into=...)",
)
TOO_MANY_BITS = Template(
    "schedule.too_many_bits", "a number of {bits} bits is not {kind}", "{bits} 位的数不能作为{kind}"
)
IS_NOT = Template("schedule.is_not", "{value} is not {kind}", "{value} 不是{kind}")
A_RANK = Template("schedule.a_rank", "a rank", "有效的 rank 编号")
A_CHUNK = Template("schedule.a_chunk", "a chunk", "有效的块号")
AN_INTEGER = Template("schedule.an_integer", "an integer", "整数")
USE_FLOOR_DIVISION = Template(
    "schedule.use_floor_division", "use // instead of / for division", "做除法时请用 // 而不是 /"
)
TOO_LARGE_CHUNK = Template(
    "schedule.too_large_chunk",
    "the schedule names a chunk number of 2**31 or more; expected a smaller one",
    "调度中出现了不小于 2**31 的块号；应使用更小的块号",
)

# A value of any type, as an error shows it.
VALUE_OF_TYPE = Template("schedule.value_of_type", "{value} ({type})", "{value}（{type}）")
UNPRINTABLE = Template("schedule.unprintable", "a value that cannot be printed", "无法打印的值")

# Hazards inside a step.
WRITTEN_TWICE = Template(
    "schedule.written_twice", "chunk {chunk} is written twice in one step", "同一步中第 {chunk} 块被写入两次"
)
READ_AND_WRITTEN = Template(
    "schedule.read_and_written",
    "chunk {chunk} is read by one op and written by another in the same step",
    "同一步中，一个动作读取第 {chunk} 块，另一个动作写入它",
)
TWO_OPS = Template("schedule.two_ops", "`{first}` and `{second}`", "`{first}` 与 `{second}`")
USE_TWO_STEPS = Template(
    "schedule.use_two_steps",
    "put them into two steps, in the order you mean",
    "请按需要的先后顺序把它们分成两步",
)

# Composition.
NOT_MAPPED = Template(
    "schedule.not_mapped",
    "the program names a chunk or a rank that mapped(...) does not list: it lists {ranks} ranks and {chunks} chunks",
    "程序用到了 mapped(...) 没有列出的块或 rank：它只列出了 {ranks} 个 rank 和 {chunks} 块",
)
ALL = Template("schedule.all", "all", "全部")
LIST_ALL_USED = Template(
    "schedule.list_all_used",
    "give the inner program the size of its group, program(me, len(ranks)), and list a chunk for each chunk that it "
    "uses, scratch included",
    "请把组的大小传给内层程序：program(me, len(ranks))，并为它用到的每一块（包括暂存块）列出一块",
)
NOT_REVERSIBLE = Template(
    "schedule.not_reversible", "a program with `{kind}` cannot run backwards", "含有 `{kind}` 的程序不能倒序执行"
)
ONLY_REVERSIBLE = Template(
    "schedule.only_reversible",
    "only programs of {send} and {recv} can be reversed",
    "只有由 {send} 和 {recv} 组成的程序才能倒序执行",
)
NOT_RUNNING = Template(
    "schedule.not_running",
    "{function}(...) was given {program} instead of its steps",
    "传给 {function}(...) 的是 {program}，而不是它的步骤",
)
CALL_PROGRAM = Template(
    "schedule.call_program",
    "call the program: {function}(program(me, size), ...)",
    "请调用该程序：{function}(program(me, size), ...)",
)
INNER_NOT_A_STEP = Template(
    "schedule.inner_not_a_step",
    "the inner program yields something that is not a step",
    "内层程序产生的不是步骤",
)

# Ranks of a schedule.
NO_RANK_OF_SCHEDULE = Template(
    "schedule.no_rank_of_schedule",
    "{algorithm}: there is no rank {rank}; expected a rank from 0 to {last}",
    "{algorithm}：没有 rank {rank}；应为 0 到 {last} 之间的 rank 编号",
)
STEPS_NOT_KEPT = Template(
    "schedule.steps_not_kept",
    "{algorithm}: the steps of rank {rank} were not kept",
    "{algorithm}：没有保留 rank {rank} 的步骤",
)
