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
    growth = round(100 * (more.proof.busiest / few.proof.busiest - 1))  # percent
    captions = [
        Caption(0, Words(
            f"How much does one rank send in an all-reduce? Count it. With p = {FEW}, the vector has {FEW} chunks, "
            f"so a chunk is 1/{FEW} of it.",
            f"一次 all-reduce 中，一个 rank 要发送多少？数一数就知道。p = {FEW} 时，向量分为 {FEW} 块，每块是 "
            f"1/{FEW}。",
        ), {"ranks": FEW}),
        Caption(half, Words(
            f"{half} steps to sum, with one chunk sent in each. One of the p chunks finishes on this rank and is "
            f"never sent during this half, hence p − 1.",
            f"求和用了 {half} 步，每步发一块。p 块中有一块在本 rank 上完成求和，这一半里从不发出，所以是 p − 1。",
        ), {"ranks": FEW}),
        Caption(few.levels, Words(
            f"{few.levels - half} more steps to share, another p − 1 chunks: 2(p − 1) chunks of 1/p each. For p = "
            f"{FEW} that is {few.proof.busiest} of the vector, as the verifier counts.",
            f"分发又是 {few.levels - half} 步，再发 p − 1 块：一共 2(p − 1) 块，每块 1/p。p = {FEW} 时为向量的 "
            f"{few.proof.busiest}，与验证器数出的一样。",
        ), {"ranks": FEW}),
        Caption(more.levels, Words(
            f"With {MORE} ranks there are {more.levels} steps, but the chunks are smaller: {more.levels} × 1/{MORE} "
            f"= {more.proof.busiest}. Twice the ranks, and only {growth} % more to send.",
            f"{MORE} 个 rank 要 {more.levels} 步，但块也更小：{more.levels} × 1/{MORE} = {more.proof.busiest}。rank "
            f"多一倍，要发送的只多 {growth} %。",
        ), {"ranks": MORE}),
        Caption(many.levels, Words(
            f"{MANY} ranks: {many.proof.busiest}. The factor approaches 2 and never reaches it. If ranks do the "
            f"sums, and not a switch, no algorithm can do better: the derivation below gives the reason.",
            f"{MANY} 个 rank：{many.proof.busiest}。这个系数趋近于 2，但永远达不到。只要由 rank（而不是交换机）求和，"
            f"就没有算法能做得更好，理由见下面的推导。",
        ), {"ranks": MANY}),
    ]  # fmt: skip
    question = Question(
        Words(
            f"{MORE} ranks with {ALGBW} GB each complete an all-reduce in one second: algbw = {ALGBW} GB/s. The "
            f"algorithm sends as few bytes as possible. How much went through each rank's link in each direction?",
            f"{MORE} 个 rank 各有 {ALGBW} GB 数据，一次 all-reduce 用时一秒：algbw = {ALGBW} GB/s。"
            f"所用的算法发送的字节数最少。每个 rank 的链路单向传输了多少？",
        ),
        tuple(Words(f"{value:g} GB", f"{value:g} GB") for value in (ALGBW, busbw, 2 * ALGBW)),
        1,
        Words(
            f"{busbw:g} GB: {ALGBW} × {factor}. This is bus bandwidth (busbw): it can be compared with the speed of "
            f"the link, whatever the number of ranks. It does not say what an algorithm really sent, but how close "
            f"the call came to the speed of the link. Benchmarks print both, and so does `unisono bench`.",
            f"{busbw:g} GB：{ALGBW} × {factor}。这就是总线带宽（busbw）：不论有多少 rank，都可以直接与链路速率比较。"
            f"它说明的不是算法实际发送了多少，而是这次调用离链路的速率有多近。测速工具会同时给出两者，"
            f"`unisono bench` 也一样。",
        ),
    )
    return script_page("busbw", many.levels, captions, question)


TITLE = Words("Why 2(p−1)/p", "为什么是 2(p−1)/p")
STORY = Words(
    "Count the chunks that a rank sends in an all-reduce: they are the factor.",
    "数一数 all-reduce 中每个 rank 发送多少块，就得到这个系数。",
)
LESSON = Lesson("busbw", TITLE, STORY, (Page("busbw", TITLE, STORY, _draw),))
