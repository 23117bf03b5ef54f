"""The messages of this package, in English and Chinese."""

from unisono.message import Template

BAD_BYTES = Template(
    "simulator.bad_bytes",
    "simulate: nbytes\n  expected: a whole number of bytes, 0 to {most}\n  found:    {found}\n"
    "  hint:     4 * 2**20 is 4 MiB",
    "simulate：nbytes\n  应为：0 到 {most} 的整数字节数\n  实际：{found}\n  建议：4 * 2**20 即 4 MiB",
)
BAD_SEGMENTS = Template(
    "simulator.bad_segments",
    "simulate: segments\n  expected: a whole number from 1 to {most}, or None\n  found:    {found}\n"
    "  hint:     None cuts a call as the engine does",
    "simulate：segments\n  应为：1 到 {most} 的整数，或 None\n  实际：{found}\n  建议：None 表示按引擎的方式分段",
)
NOT_A_SCHEDULE = Template(
    "simulator.not_a_schedule",
    "simulate: the first argument is {found}\n  expected: a schedule\n"
    '  hint:     unisono.find("ring").schedule(8) is a schedule of 8 ranks',
    'simulate：第一个参数是 {found}\n  应为：调度\n  建议：unisono.find("ring").schedule(8) 是 8 个 rank 的调度',
)
NOT_A_NETWORK = Template(
    "simulator.not_a_network",
    "the network is {found}\n  expected: a Network, the name of a preset, or the path of a network file",
    "网络是 {found}\n  应为：Network 对象、预设名称或网络文件的路径",
)
NOT_A_CODEC = Template(
    "simulator.not_a_codec",
    "simulate: codec\n  expected: the name of a codec, a Codec, or None\n  found:    {found}\n"
    "  hint:     bf16 is a codec",
    "simulate：codec\n  应为：编解码器名称、Codec 或 None\n  实际：{found}\n  建议：bf16 是一种编解码器",
)
BAD_DTYPE = Template(
    "simulator.bad_dtype",
    "simulate: dtype={found}\n  expected: one of {known}",
    "simulate：dtype={found}\n  应为：以下之一：{known}",
)
CODEC_NEEDS_FLOAT32 = Template(
    "simulator.codec_needs_float32",
    "simulate: codec {codec} with {dtype}\n  expected: float32, as codecs encode nothing else",
    "simulate：编解码器 {codec} 用于 {dtype}\n  应为：float32，编解码器只编码这种类型",
)
NO_TOPK = Template(
    "simulator.no_topk",
    "simulate: codec {codec}\n  expected: a codec that encodes every message\n"
    "  hint:     top-k is an all_gather of the elements that are kept: simulate that all_gather",
    "simulate：编解码器 {codec}\n  应为：对每条消息编码的编解码器\n"
    "  建议：top-k 是对保留元素的 all_gather：请模拟该 all_gather",
)
TOO_LARGE = Template(
    "simulator.too_large",
    "{algorithm} on {size} ranks: {events} messages in {passes} segments\n  expected: at most {most} messages\n"
    "  hint:     simulate fewer ranks, or ask for fewer segments",
    "{algorithm}，{size} 个 rank：{passes} 个分段共 {events} 条消息\n  应为：至多 {most} 条消息\n"
    "  建议：减少 rank 数，或减少分段数",
)
NOT_FINISHED = Template(
    "simulator.not_finished",
    "{algorithm} on {size} ranks: a rank waits for ever, but the programs run to their end without segments",
    "{algorithm}，{size} 个 rank：有 rank 无限等待，而不分段时程序能运行到结束",
)

# How ranks are simulated.
RANK_BY_RANK = Template("simulator.rank_by_rank", "rank by rank", "逐个 rank")
FOLDED = Template("simulator.folded", "folded into {classes} classes", "折叠为 {classes} 类")
FOLDED_INTO_ONE = Template("simulator.folded_into_one", "folded into 1 class", "折叠为 1 类")
FOLDED_SIMILAR = Template(
    "simulator.folded_similar", "folded into {classes} classes of similar ranks", "折叠为 {classes} 类相近的 rank"
)
