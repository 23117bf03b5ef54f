"""Lesson 5: trees and recursive doubling, for short vectors."""

from __future__ import annotations

from unisono.algorithms import find
from unisono.collectives import Words
from unisono.drawing.course.kinds import scenes_page
from unisono.drawing.course.record import Caption, Drawn, Lesson, Page, Question, number_choices
from unisono.drawing.course.trace import Trace
from unisono.verifier import prove

RANKS, MANY = 8, 1024
ODD = 7  # ranks, not a power of two


def _tree() -> Drawn:
    trace = Trace.of("tree", RANKS)
    half, ((root, _),) = trace.first_complete
    ring = Trace.of("ring", RANKS)
    steps = [len(trace.messages(level)) for level in range(1, half + 1)]
    many = prove(find("tree").schedule(MANY)).levels
    captions = [
        Caption(0, Words(
            f"The ring needs {ring.levels} steps on {RANKS} ranks. If the vector is short, steps cost more than "
            f"bytes: each message takes time, however little it carries.",
            f"{RANKS} 个 rank 的环要走 {ring.levels} 步。向量很短时，时间主要取决于步数，而不是字节数：数据再少，"
            f"每条消息也要花时间。",
        )),
        Caption(1, Words(
            f"A tree: {steps[0]} ranks send their whole vector to the other {steps[0]}, which add it. Rank {root} "
            f"now has {trace.sum_text(1, root)}.",
            f"换成树：{steps[0]} 个 rank 把整个向量发给另外 {steps[0]} 个，后者相加。rank {root} 此时有 "
            f"{trace.sum_text(1, root)}。",
        )),
        Caption(half, Words(
            f"{steps[0]}, {steps[1]}, then {steps[2]} message: after {half} steps rank {root} holds the whole sum. "
            f"This was a reduce.",
            f"消息数依次为 {steps[0]}、{steps[1]}、{steps[2]}：{half} 步之后，rank {root} 得到总和。这就是 reduce。",
        )),
        Caption(half + 1, Words(
            "Now the same tree backwards: a broadcast. Each rank that has the sum passes it on.",
            "再把同一棵树倒过来走：broadcast。每个已有总和的 rank 都往外发。",
        )),
        Caption(trace.levels, Words(
            f"{trace.levels} steps instead of {ring.levels}. The price: rank {root} has sent {trace.proof.busiest} "
            f"whole vectors, while in the ring every rank sends {ring.proof.busiest}.",
            f"{trace.levels} 步，而环要 {ring.levels} 步。代价是：rank {root} 发送了 {trace.proof.busiest} "
            f"个完整的向量，而环中每个 rank 只发送 {ring.proof.busiest}。",
        )),
    ]  # fmt: skip
    question = Question(
        Words(f"The tree of {RANKS} ranks needs {trace.levels} steps. How many does a tree of {MANY:,} ranks need?",
              f"{RANKS} 个 rank 的树要 {trace.levels} 步。{MANY} 个 rank 的树要几步？"),
        *number_choices(many, MANY - 1, trace.levels * MANY // RANKS),
        Words(
            f"{many}: {many // 2} up and {many // 2} down, since 2 to the power of {many // 2} is {MANY:,}. A ring "
            f"of {MANY:,} ranks needs {2 * (MANY - 1):,} steps.",
            f"{many} 步：上行 {many // 2} 步，下行 {many // 2} 步，因为 2 的 {many // 2} 次方是 {MANY}。{MANY} 个 "
            f"rank 的环则要 {2 * (MANY - 1)} 步。",
        ),
    )  # fmt: skip
    return scenes_page([trace.scene], captions, question)


def _doubling() -> Drawn:
    names = ("recursive_doubling", "tree", "ring", "rabenseifner")
    trace, tree, ring, short = (Trace.of(name, RANKS) for name in names)
    odd_ring, odd_short = (prove(find(name).schedule(ODD)) for name in ("ring", "rabenseifner"))
    partners = [next(dst for src, dst in trace.messages(level) if src == 0) for level in range(1, trace.levels + 1)]
    captions = [
        Caption(0, Words(
            f"In the tree, most ranks wait: in step 3, only {len(tree.messages(3))} message moves. Can all ranks "
            f"work in every step?",
                f"在树中，大部分 rank 都在等待：第 3 步只有 {len(tree.messages(3))} 条消息。"
            f"能不能让每个 rank 在每一步都有事做？",
        )),
        Caption(1, Words(
            f"Every rank exchanges its vector with a partner at distance {partners[0]}, and both add. Ranks 0 and "
            f"{partners[0]} now both hold {trace.sum_text(1, 0)}.",
            f"每个 rank 与距离为 {partners[0]} 的伙伴交换向量，双方都相加。rank 0 和 rank {partners[0]} 此时都有 "
            f"{trace.sum_text(1, 0)}。",
        )),
        Caption(2, Words(
            f"Distance {partners[1]}: rank 0 now holds {trace.sum_text(2, 0)}. With every step, the sum on each "
            f"rank covers twice as many ranks.",
            f"距离 {partners[1]}：rank 0 有了 {trace.sum_text(2, 0)}。每一步之后，每个 rank 手里的和所含的 "
            f"rank 数都翻一倍。",
        )),
        Caption(trace.levels, Words(
            f"Distance {partners[2]}, and all {RANKS} ranks are done at once: {trace.levels} steps, half as many as "
            f"the tree, because nothing has to be sent back.",
            f"距离 {partners[2]}，{RANKS} 个 rank 同时完成：{trace.levels} 步，只有树的一半，因为不需要再往回发。",
        )),
    ]  # fmt: skip
    question = Question(
        Words(
            f"Recursive doubling takes {trace.levels} steps, the ring {ring.levels}. Why use the ring at all?",
            f"递归倍增只要 {trace.levels} 步，环要 {ring.levels} 步。为什么还有人用环？",
        ),
        (
            Words("The ring has fewer messages.", "环的消息更少。"),
            Words("In the ring, each rank sends fewer bytes.", "在环中，每个 rank 发送的字节更少。"),
            Words("Recursive doubling does not give all ranks the same bits.", "递归倍增不能保证各 rank 逐位一致。"),
        ),
        1,
        Words(
            f"Bytes. In recursive doubling each rank sends the whole vector {trace.levels} times, in the ring only "
            f"{ring.proof.busiest} of it. At 8 bytes the steps decide, at 1 GiB the bytes: lesson 8 shows where the "
            f"fastest algorithm changes. (The ring even has more messages: {ring.proof.messages} against "
            f"{trace.proof.messages}.) The bits agree in both, since a+b = b+a in floating point: partners round "
            f"alike. Rabenseifner's algorithm (lesson 8) sends as little as the ring, {short.proof.busiest}, in only "
            f"{short.levels} steps; but the ring uses only links between neighbours and is as economical on any "
            f"number of ranks: on {ODD} ranks it sends {odd_ring.busiest}, Rabenseifner's algorithm "
            f"{odd_short.busiest}.",
            f"字节数。递归倍增中每个 rank 要把整个向量发送 {trace.levels} 次，环只发送 {ring.proof.busiest}。8 "
            f"字节时由步数决定，1 GiB 时由字节数决定：第 8 课会看到最快的算法在哪里改变。（环的消息其实更多："
            f"{ring.proof.messages} 条，递归倍增只有 {trace.proof.messages} 条。）两者的结果都逐位一致："
            f"浮点数也满足 a+b = b+a，通信双方舍入的结果相同。Rabenseifner 算法（第 8 课）发送得与环一样少，也是 "
            f"{short.proof.busiest}，只要 {short.levels} 步；但环只用相邻 rank 之间的链路，而且 rank "
            f"数任意时都同样节省：{ODD} 个 rank 时，环发送 {odd_ring.busiest}，Rabenseifner 算法发送 "
            f"{odd_short.busiest}。",
        ),
    )
    return scenes_page([trace.scene], captions, question)


LESSON = Lesson(
    "trees",
    Words("Trees and doubling", "树与倍增"),
    Words("Short vectors: count the steps, not the bytes.", "短向量：要数的是步数，不是字节数。"),
    (
        Page("tree", Words("A tree", "树"),
             Words("Half of the remaining ranks send their sums; then the sum goes back the same way.",
                   "剩下的 rank 中每次有一半发出部分和，然后总和原路返回。"), _tree),
        Page("doubling", Words("Recursive doubling", "递归倍增"),
             Words(
                 "Every rank exchanges sums with a partner at distance 1, 2, 4.",
                 "每个 rank 依次与距离 1、2、4 的伙伴交换部分和。"),
             _doubling),
    ),
)  # fmt: skip
