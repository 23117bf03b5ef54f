"""Lesson 3: the ring on five ranks, and its two halves."""

from __future__ import annotations

import numpy as np

from unisono.algorithms import find
from unisono.collectives import Words
from unisono.drawing.course.kinds import scenes_page
from unisono.drawing.course.record import Caption, Drawn, Lesson, Page, Question
from unisono.drawing.course.trace import Trace, joined
from unisono.drawing.scene import example_inputs, scene_of
from unisono.notation import chunk_name
from unisono.player import play

RANKS, FEW = 5, 4


def _ring() -> Drawn:
    trace = Trace.of("ring", RANKS)
    half, done = trace.first_complete
    finished = {level: whole_on(trace, level) for level in range(trace.levels + 1)}
    when = next(level for level, ranks in finished.items() if ranks)
    own = dict(done)
    chunk = next(chunk for chunk in range(RANKS) if len(trace.summed(1, 1, chunk)) > 1)
    sums = [trace.value(trace.levels, 0, each) for each in range(RANKS)]
    captions = [
        Caption(0, Words(
            f"{RANKS} ranks, each with a list of {RANKS} numbers. The lists are to be summed, element by element: "
            f"{RANKS} chunks, {chunk_name(0)} to {chunk_name(RANKS - 1)}; a2 is chunk a of rank 2. Each rank may "
            f"talk only to its neighbours.",
            f"{RANKS} 个 rank，每个有一列 {RANKS} 个数，要逐个对应相加：共 {RANKS} 块，记作 {chunk_name(0)} 到 "
            f"{chunk_name(RANKS - 1)}；a2 是 rank 2 的 a 块。每个 rank 只与左右邻居通信。",
        )),
        Caption(1, Words(
            f"Each rank sends one chunk to the right and adds the one that comes from the left. Rank 1 now holds "
            f"{trace.sum_text(1, 1, chunk)}. {len(trace.messages(1))} messages at once, and no rank is idle.",
            f"每个 rank 把一块发给右邻居，同时把左邻居发来的一块加到自己的块上。rank 1 此时有 "
            f"{trace.sum_text(1, 1, chunk)}。{len(trace.messages(1))} 条消息同时传输，没有 rank 闲着。",
        )),
        Caption(2, Words(
            f"Every rank passes on the chunk that it has just added to. Rank 2 adds its own number: "
            f"{trace.sum_text(2, 2, chunk)}. Follow this chunk: it gains one number at each stop.",
            f"每个 rank 把刚加过的那一块继续往右传。rank 2 加上自己的数：{trace.sum_text(2, 2, chunk)}。盯住这一块："
            f"每到一站就多加一个数。",
        )),
        Caption(half, Words(
            f"After {half} steps every rank holds exactly one finished sum, shown in green; rank 0 has chunk "
            f"{chunk_name(own[0])}: {trace.value(half, 0, own[0])}. This half is called reduce-scatter.",
            f"{half} 步之后，每个 rank 恰好有一块最终的和（绿色）；rank 0 的是 {chunk_name(own[0])} 块："
            f"{trace.value(half, 0, own[0])}。这一半叫做 reduce-scatter。",
        )),
        Caption(half + 1, Words(
            "From now on nothing is added. The finished sums go around the ring once more, and each rank stores a "
            "copy: all-gather.",
            "从这里开始不再做加法。最终的和再绕环一圈，每个 rank 各存一份：这一半叫做 all-gather。",
        )),
        Caption(trace.levels, Words(
            f"{trace.levels} steps, {half} to sum and {trace.levels - half} to share: all ranks have "
            f"[{', '.join(map(str, sums))}]. Each has sent {trace.proof.messages_per_rank} chunks of 1/{RANKS}: "
            f"{trace.proof.busiest} of the list.",
            f"一共 {trace.levels} 步：{half} 步求和，{trace.levels - half} 步分发。所有 rank 都有 "
            f"[{', '.join(map(str, sums))}]。每个 rank 发送了 {trace.proof.messages_per_rank} 块，每块是 1/{RANKS}："
            f"合计为整列的 {trace.proof.busiest}。",
        )),
    ]  # fmt: skip
    everyone = len(finished[when]) == RANKS
    question = Question(
        Words(
            "Which rank is the first to hold the whole list of sums, and why?",
            "哪个 rank 最先得到完整的一列总和？为什么？",
        ),
        (
            Words("Rank 0, because it starts.", "rank 0，因为由它开始。"),
            Words(f"Rank {RANKS - 1}, because it is the last in the ring.", f"rank {RANKS - 1}，因为它在环的末尾。"),
            Words(f"All of them, after step {when}.", f"第 {when} 步之后，所有 rank 同时得到。"),
        ),
        2 if everyone else finished[when][0] // (RANKS - 1),
        Words(
            f"All of them, after step {when}; before that, none. A ring has no first and no last rank: every rank "
            f"does the same work in every step, on a different chunk. Individual sums are finished earlier: after "
            f"step {half}, rank {done[0][0]} has the sum of chunk {chunk_name(done[0][1])}, and rank {done[1][0]} "
            f"that of {chunk_name(done[1][1])}.",
            f"第 {when} 步之后所有 rank 同时得到，此前没有。环没有头也没有尾：每一步里，每个 rank 做的事都一样，"
            f"只是块不同。单独一块的和会早一些完成：第 {half} 步之后，rank {done[0][0]} 有 {chunk_name(done[0][1])} "
            f"块的，rank {done[1][0]} 有 {chunk_name(done[1][1])} 块的。",
        ),
    )
    return scenes_page([trace.scene], captions, question)


def _halves() -> Drawn:
    """Let all-gather start from the results of reduce-scatter, beside an all-reduce that does both."""
    first, second, both = (Trace.of(name, FEW) for name in ("reduce_scatter/ring", "all_gather/ring", "ring"))
    parts = [part for part in play(first.schedule, _inputs(first)).outputs if part is not None]
    gathered = scene_of(second.schedule, find(second.schedule.label), inputs=[part.tolist() for part in parts])
    sums = [int(part.item()) for part in parts]
    half, last = first.levels, first.levels + second.levels
    captions = [
        Caption(0, Words(
            f"{FEW} ranks, now with numbers. The first two pictures split an all-reduce in two: reduce-scatter, then "
            f"all-gather. In the third, one ring does both.",
            f"{FEW} 个 rank，这次显示数字。前两幅图把 all-reduce 拆成两个：先 reduce-scatter，再 all-gather；"
            f"第三幅图里，一个环把两件事都做完。",
        )),
        Caption(half, Words(
            f"Reduce-scatter is finished. Ranks 0 to {FEW - 1} hold {joined(sums, 'and')}: one sum each, and no rank "
            f"has the whole list.",
            f"reduce-scatter 完成。rank 0 到 rank {FEW - 1} 分别有 {joined(sums, '和')}：各有一个，没有哪个 rank "
            f"有整列。",
        )),
        Caption(half + 1, Words(
            "All-gather starts from exactly these results. Compare each step with the third picture: the same chunks "
            "move between the same ranks.",
            "all-gather 正是从这些结果开始。与第三幅图的 all-reduce 逐步比较：移动的块相同，收发的 rank 也相同。",
        )),
        Caption(last, Words(
            f"Both end with [{', '.join(map(str, sums))}] on every rank. Look at the program of the ring: its "
            f"two lines are the programs of the other two.",
            f"两种做法的结果相同：每个 rank 都有 [{', '.join(map(str, sums))}]。看环的程序：它只有两行，"
            f"正是另外两个程序。",
        )),
    ]  # fmt: skip
    question = Question(
        Words(
            "Gradients must be summed, but each rank updates only its own quarter of the model. Which collective is "
            "enough?",
            "梯度需要求和，但每个 rank 只更新模型中自己的那四分之一。用哪个集合通信操作就够了？",
        ),
        (
            Words("all-reduce", "all-reduce"),
            Words("reduce-scatter", "reduce-scatter"),
            Words("all-gather", "all-gather"),
        ),
        1,
        Words(
            f"Reduce-scatter: each rank gets the sums of its own quarter, and sends {first.proof.busiest} of the "
            f"vector instead of the {both.proof.busiest} of an all-reduce. ZeRO and FSDP do this: lesson 7.",
            f"reduce-scatter：每个 rank 得到自己那四分之一的和，只需发送整个向量的 {first.proof.busiest}，而 "
            f"all-reduce 要发送 {both.proof.busiest}。ZeRO 和 FSDP 就是这样做的：见第 7 课。",
        ),
    )
    return scenes_page([first.scene, gathered, both.scene], captions, question, numbers=True, offsets=(0, half, 0))


def whole_on(trace: Trace, level: int) -> list[int]:
    """Return the ranks that hold all sums after a level."""
    complete = [rank for rank, _ in trace.complete(level)]
    return [rank for rank in range(trace.schedule.size) if complete.count(rank) == trace.schedule.chunks]


def _inputs(trace: Trace) -> list[np.ndarray]:
    return [np.array(row) for row in example_inputs(trace.schedule)]


LESSON = Lesson(
    "ring",
    Words("The ring", "环"),
    Words(
        "Five ranks in a circle: four steps to sum, four steps to share.",
        "五个 rank 围成一圈：四步求和，四步分发。"),
    (
        Page("five", Words("Five ranks, eight steps", "五个 rank，八步"),
             Words("Every chunk makes one trip around the ring to be summed, and a second one to be shared.",
                   "每一块绕环一圈求和，再绕一圈分发。"), _ring),
        Page("halves", Words("Two halves", "前后两半"),
             Words("all-reduce = reduce-scatter + all-gather", "all-reduce = reduce-scatter + all-gather"), _halves),
    ),
)  # fmt: skip
