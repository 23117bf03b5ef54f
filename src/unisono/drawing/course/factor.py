"""Lesson 4: why the bytes of an all-reduce are 2(p-1)/p."""

from __future__ import annotations

from unisono.collectives import Words, all_reduce
from unisono.drawing.course.kinds import script_page
from unisono.drawing.course.record import Caption, Drawn, Lesson, Page, Question
from unisono.drawing.course.trace import Trace

FEW, MORE, MANY = 4, 8, 64
ALGBW = 30  # GB/s, of the question


def _draw() -> Drawn:
    few, more, many = (Trace.of("ring", size) for size in (FEW, MORE, MANY))
    half = few.levels // 2
    factor = all_reduce.bus_factor(MORE)
    busbw = float(ALGBW * factor)
    captions = [
        Caption(0, Words(
            f"How much does one rank send in an all-reduce? Count it. With p = {FEW}, the vector has {FEW} chunks, "
            f"so a chunk is 1/{FEW} of it.",
            f"一次 all-reduce 中，一个 rank 要发送多少？数一数就知道。p = {FEW} 时，向量分为 {FEW} 块，每块是 "
            f"1/{FEW}。",
        ), {"ranks": FEW}),
        Caption(half, Words(
            f"{half} steps to sum: p − 1 chunks sent, one in each step. The chunk that ends here never has to leave, "
            f"so it is p − 1 and not p.",
            f"求和用了 {half} 步：每步发一块，共 p − 1 块。最后留在本 rank 的那一块不必发出，所以是 p − 1 而不是 p。",
        ), {"ranks": FEW}),
        Caption(few.levels, Words(
            f"{few.levels - half} more steps to share, another p − 1 chunks: 2(p − 1) chunks of 1/p each. For p = "
            f"{FEW} that is {few.proof.busiest} of the vector, as the verifier counts.",
            f"分发又是 {few.levels - half} 步，再发 p − 1 块：一共 2(p − 1) 块，每块 1/p。p = {FEW} 时为向量的 "
            f"{few.proof.busiest}，与验证器数出的一样。",
        ), {"ranks": FEW}),
        Caption(more.levels, Words(
            f"With {MORE} ranks there are {more.levels} steps, but the chunks are smaller: {more.levels} × 1/{MORE} "
            f"= {more.proof.busiest}. Twice the ranks, and hardly more to send.",
            f"{MORE} 个 rank 要 {more.levels} 步，但块也更小：{more.levels} × 1/{MORE} = {more.proof.busiest}。rank "
            f"多一倍，要发送的几乎没有增加。",
        ), {"ranks": MORE}),
        Caption(many.levels, Words(
            f"{MANY} ranks: {many.proof.busiest}. The factor approaches 2 and never reaches it. No algorithm can do "
            f"better, because the verifier's lower bound is {many.proof.least_bytes} as well.",
            f"{MANY} 个 rank：{many.proof.busiest}。这个系数趋近于 2，但永远达不到。没有算法能做得更好，"
            f"因为验证器给出的下界也是 {many.proof.least_bytes}。",
        ), {"ranks": MANY}),
    ]  # fmt: skip
    question = Question(
        Words(
            f"{MORE} ranks sum 30 GB in one second: algbw = {ALGBW} GB/s. How much went through the link of each "
            f"rank in that second?",
            f"{MORE} 个 rank 用一秒对 30 GB 求和：algbw = {ALGBW} GB/s。这一秒里，每个 rank 的链路传了多少？",
        ),
        tuple(Words(f"{value:g} GB", f"{value:g} GB") for value in (ALGBW, busbw, 2 * ALGBW)),
        1,
        Words(
            f"{busbw:g} GB: {ALGBW} × {factor}. This is bus bandwidth (busbw): it can be compared with the speed of "
            f"the link, whatever the number of ranks. Benchmarks print both, and so does `unisono bench`.",
            f"{busbw:g} GB：{ALGBW} × {factor}。这就是总线带宽（busbw）：不论有多少 rank，都可以直接与链路速率比较。"
            f"测速工具会同时给出两者，`unisono bench` 也一样。",
        ),
    )
    return script_page("busbw", many.levels, captions, question)


TITLE = Words("Why 2(p−1)/p", "为什么是 2(p−1)/p")
STORY = Words(
    "Count the chunks that a rank sends in an all-reduce: they are the factor.",
    "数一数 all-reduce 中每个 rank 发送多少块，就得到这个系数。",
)
LESSON = Lesson("busbw", TITLE, STORY, (Page("busbw", TITLE, STORY, _draw),))
