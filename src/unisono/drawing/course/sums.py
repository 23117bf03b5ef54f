"""Lesson 2: reduce and broadcast on four ranks."""

from __future__ import annotations

from unisono.algorithms import find
from unisono.collectives import Words
from unisono.drawing.course.kinds import scenes_page
from unisono.drawing.course.record import Caption, Drawn, Lesson, Page, Question, number_choices
from unisono.drawing.course.trace import Trace, joined
from unisono.verifier import prove

RANKS, MANY = 4, 1024


def _reduce() -> Drawn:
    trace = Trace.of("reduce/tree", RANKS)
    (other, _), (last, root) = sorted(trace.messages(1), reverse=True)[1], trace.messages(2)[0]
    numbers = [trace.value(0, rank) for rank in range(RANKS)]
    total = trace.value(trace.levels, root)
    twice, many = (prove(find("reduce/tree").schedule(size)).levels for size in (2 * RANKS, MANY))
    captions = [
        Caption(0, Words(
            f"Every rank has one number: {joined(numbers, 'and')}. The goal: rank {root} knows the sum. If the "
            f"others sent to rank {root} in turn, that would take {RANKS - 1} steps.",
            f"每个 rank 有一个数：{joined(numbers, '和')}。目标是让 rank {root} 知道总和。如果其他 rank 轮流发给 "
            f"rank {root}，需要 {RANKS - 1} 步。",
        )),
        Caption(1, Words(
            f"Two messages travel at once. Rank {root} receives the number of rank {other} and adds it: "
            f"{trace.value(0, root)} + {trace.value(0, other)} = {trace.value(1, root)}. Rank {last} does the same: "
            f"{trace.value(1, last)}.",
            f"两条消息同时传输。rank {root} 收到 rank {other} 的数并相加：{trace.value(0, root)} + "
            f"{trace.value(0, other)} = {trace.value(1, root)}。rank {last} 也一样，得到 {trace.value(1, last)}。",
        )),
        Caption(2, Words(
            f"Only two partial sums are left, {trace.value(1, root)} and {trace.value(1, last)}. One more message, "
            f"and rank {root} has {total}: each step halves the number of ranks that still hold a part of the sum.",
            f"只剩两个部分和：{trace.value(1, root)} 和 {trace.value(1, last)}。再发一条消息，rank {root} 就得到 "
            f"{total}：每一步都让持有部分和的 rank 减少一半。",
        )),
    ]  # fmt: skip
    question = Question(
        Words(f"How many steps does this take with {2 * RANKS} ranks instead of {RANKS}?",
              f"如果不是 {RANKS} 个而是 {2 * RANKS} 个 rank，需要几步？"),
        *number_choices(twice, 2 * trace.levels, 2 * RANKS - 1),
        Words(
            f"{twice}. Twice as many ranks cost only one more step, because the first step halves their number: "
            f"`unisono show reduce/tree -n {2 * RANKS}` shows it. {MANY:,} ranks need only {many}.",
            f"{twice} 步。rank 多一倍，只多一步，因为第一步就让 rank 数减半："
            f"见 `unisono show reduce/tree -n {2 * RANKS}`。{MANY} 个 rank 也只要 {many} 步。",
        ),
    )  # fmt: skip
    return scenes_page([trace.scene], captions, question, numbers=True)


def _broadcast() -> Drawn:
    trace = Trace.of("broadcast/tree", RANKS)
    ((src, first),) = trace.messages(1)
    have = [rank for rank in range(RANKS) if trace.summed(1, rank)]
    reduce_messages = Trace.of("reduce/tree", RANKS).proof.messages
    both = reduce_messages + trace.proof.messages
    captions = [
        Caption(0, Words(
            f"Now the opposite: rank {src} has a0, and every rank needs a copy.",
            f"现在反过来：rank {src} 有 a0，目标是让每个 rank 都有一份。",
        )),
        Caption(1, Words(
            f"Rank {src} sends a0 to rank {first}. Nothing is added here: the message is stored, so its arc is "
            f"dashed and marked =.",
            f"rank {src} 把 a0 发给 rank {first}。这里不做加法，只是存下来，所以弧线是虚线，并标着 =。",
        )),
        Caption(2, Words(
            f"Ranks {joined(have, 'and')} both have a0, and both send it on. Each step doubles the number of ranks "
            f"that have it. Reduce, watched backwards, looks exactly like this.",
            f"rank {joined(have, '和')} 都有了 a0，于是都往外发。每一步都让有数据的 rank 增加一倍。把 reduce "
            f"的动画反向播放，就是这个样子。",
        )),
    ]  # fmt: skip
    question = Question(
        Words(
            f"First reduce, then broadcast: now all {RANKS} ranks know the sum. How many messages is that?",
            f"先 reduce，再 broadcast，这样 {RANKS} 个 rank 都知道总和。一共几条消息？",
        ),
        *number_choices(both, RANKS, RANKS * (RANKS - 1)),
        Words(
            f"{reduce_messages} + {trace.proof.messages} = {both}. Each rank except the root sends exactly one "
            f"(partial) sum and receives the total once. Together they are an all-reduce, the main subject of this "
            f"course; if every rank sent to every other, it would take {RANKS * (RANKS - 1)} messages.",
            f"{reduce_messages} + {trace.proof.messages} = {both} 条。每个 rank（根除外）都恰好发出一个（部分）和，"
            f"并收到一次总和。两者合起来就是 all-reduce，也是这门课的主角；如果每个 rank 都发给所有其他 rank，则要 "
            f"{RANKS * (RANKS - 1)} 条。",
        ),
    )
    return scenes_page([trace.scene], captions, question)


LESSON = Lesson(
    "sums",
    Words("Reduce and broadcast", "reduce 与 broadcast"),
    Words(
        "Four numbers become one sum; then one sum becomes four copies.", "四个数变成一个总和，一个总和再变成四份。"),
    (
        Page("reduce", Words("Reduce", "reduce"),
             Words("Every rank has a number; afterwards one of them knows the sum.",
                   "每个 rank 有一个数，结束时其中一个 rank 知道总和。"), _reduce),
        Page("broadcast", Words("Broadcast", "broadcast"),
             Words(
                 "One rank knows the sum; afterwards all of them do.",
                 "一个 rank 知道总和，结束时所有 rank 都知道。"),
             _broadcast),
    ),
)  # fmt: skip
