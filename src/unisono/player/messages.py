"""The messages of the player, in English and Chinese: errors about inputs, and programs that fail while they run."""

from unisono.message import Template

NOTHING_RECORDED = Template(
    "player.nothing_recorded",
    "nothing was recorded; call play(..., record=True)",
    "没有记录各步；请调用 play(..., record=True)",
)
RESULT_MISSING = Template("player.result_missing", "a chunk of the result is missing", "结果中缺少一块")
PROVE_IT = Template(
    "player.prove_it",
    "prove the schedule, unisono.prove(...), for a precise error",
    "用 unisono.prove(...) 证明该调度，可得到准确的错误",
)
INPUT_COUNT = Template(
    "player.input_count",
    "{algorithm}: inputs for {count} ranks; expected one for each of {size}",
    "{algorithm}：给出了 {count} 个 rank 的输入；{size} 个 rank 应各有一个输入",
)
NO_INPUT = Template(
    "player.no_input",
    "{algorithm}: rank {rank} has no input; expected an array",
    "{algorithm}：rank {rank} 没有输入；应为一个数组",
)
BAD_SHAPE = Template(
    "player.bad_shape",
    "{algorithm}: the input of rank {rank} has shape {shape}; expected one dimension",
    "{algorithm}：rank {rank} 的输入形状为 {shape}；应为一维数组",
)
OTHER_DTYPE = Template(
    "player.other_dtype",
    "{algorithm}: rank {rank} has dtype {dtype}, rank {first_rank} has {first_dtype}; expected the same on every "
    "rank",
    "{algorithm}：rank {rank} 的 dtype 是 {dtype}，rank {first_rank} 的是 {first_dtype}；各 rank 应相同",
)
OTHER_LENGTH = Template(
    "player.other_length",
    "{algorithm}: rank {rank} has {length} elements, rank {first_rank} has {first_length}; expected the same on "
    "every "
    "rank",
    "{algorithm}：rank {rank} 有 {length} 个元素，rank {first_rank} 有 {first_length} 个；各 rank 应相同",
)
READ_BEFORE_WRITTEN = Template(
    "player.read_before_written",
    "chunk {chunk} is read, but nothing was ever written to it",
    "读取了第 {chunk} 块，但它从未被写入",
)
ADDED_TO_NOTHING = Template(
    "player.added_to_nothing",
    "data is added to chunk {chunk}, but nothing was ever written to it",
    "向第 {chunk} 块累加，但它从未被写入",
)
DIFFERENT_LENGTHS = Template(
    "player.different_lengths",
    "chunk {chunk} has {length} elements, but the data that is added to it has {added}",
    "第 {chunk} 块有 {length} 个元素，却要与 {added} 个元素相加",
)
