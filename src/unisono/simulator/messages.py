"""The messages of this package, in English and Chinese."""

from unisono.message import Template

BAD_BYTES = Template(
    "simulator.bad_bytes",
    "simulate: nbytes={found}\n  expected: a whole number of bytes, 0 or more",
    "simulate：nbytes={found}\n  应为：不小于 0 的整数字节数",
)
BAD_SEGMENTS = Template(
    "simulator.bad_segments",
    "simulate: segments={found}\n  expected: a whole number of at least 1, or None",
    "simulate：segments={found}\n  应为：不小于 1 的整数，或 None",
)
NOT_A_SCHEDULE = Template(
    "simulator.not_a_schedule",
    "simulate: the first argument is {found}\n  expected: a schedule\n"
    '  hint:     unisono.find("ring").schedule(8) is a schedule of 8 ranks',
    'simulate：第一个参数是 {found}\n  应为：调度\n  建议：unisono.find("ring").schedule(8) 是 8 个 rank 的调度',
)
NOT_A_NETWORK = Template(
    "simulator.not_a_network",
    "simulate: the network is {found}\n  expected: a Network, the name of a preset, or the path of a network file",
    "simulate：网络是 {found}\n  应为：Network 对象、预设名称或网络文件的路径",
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
