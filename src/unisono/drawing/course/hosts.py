"""Lesson 6: hierarchy. Two hosts with fast links inside and a slow one between them."""

from __future__ import annotations

from fractions import Fraction

from unisono.collectives import Words
from unisono.drawing.course.kinds import scenes_page
from unisono.drawing.course.record import Caption, Drawn, Lesson, Page, Question
from unisono.drawing.course.trace import Trace

RANKS, PER_HOST = 8, 4


def _draw() -> Drawn:
    trace, ring = Trace.of("hierarchical", RANKS, node=PER_HOST), Trace.of("ring", RANKS)
    crossing = [level for level in range(1, trace.levels + 1) if any(map(is_far, trace.messages(level)))]
    first, last = crossing[0], crossing[-1]
    src, dst = min(filter(is_far, trace.messages(first)))
    here, there = far_share(trace), far_share(ring)
    captions = [
        Caption(0, Words(
            f"Two hosts (nodes 0 and 1 in the picture) with {PER_HOST} ranks each. Inside a host, data moves "
            f"through memory or NVLink; between the hosts there is a slower network. The idea: do as much as "
            f"possible inside.",
            f"两台主机（图中的节点 0 和 1），各有 {PER_HOST} 个 rank。主机内部走内存或 NVLink，主机之间走网络，"
            f"要慢得多。思路是：尽量在主机内部完成。",
        )),
        Caption(1, Words(
            f"First a reduce-scatter inside each host, {first - 1} steps. Both hosts work at the same time, and "
            f"nothing crosses the slow link.",
            f"先在每台主机内部做 reduce-scatter，共 {first - 1} 步。两台主机同时进行，慢链路上没有任何数据。",
        )),
        Caption(first, Words(
            f"Now each rank has the sum of its host for a quarter of the vector, and exchanges it with its partner "
            f"on the other host: rank {src} with rank {dst}. Only {len(crossing)} of {trace.levels} steps cross.",
            f"此时每个 rank 有本主机在四分之一向量上的和，再与另一台主机上的伙伴交换：rank {src} 与 rank {dst}。"
            f"{trace.levels} 步中只有 {len(crossing)} 步跨主机。",
        )),
        Caption(last + 1, Words(
            "The finished sums are shared inside each host by an all-gather. The slow link is idle again.",
            "最终的和在每台主机内部用 all-gather 分发。慢链路又空闲了。",
        )),
        Caption(trace.levels, Words(
            f"All ranks have all sums after {trace.levels} steps. Between the hosts {here} vectors were sent, both "
            f"directions added; a ring over all {RANKS} ranks sends {there}.",
            f"{trace.levels} 步之后，所有 rank 都有全部的和。主机之间两个方向一共传了 {here} 个向量；{RANKS} 个 rank "
            f"排成一个大环则要传 {there} 个。",
        )),
    ]  # fmt: skip
    question = Question(
        Words(
            f"Suppose that ranks 0 to {RANKS - 1} form one ring instead. How much data crosses between the hosts, "
            f"compared with the hierarchy?",
            f"如果改为 rank 0 到 rank {RANKS - 1} 排成一个大环，与分层相比，跨主机传输的数据是更多还是更少？",
        ),
        (
            Words("Less, since only two links of the ring cross.", "更少，因为环上只有两条链路跨主机。"),
            Words("The same.", "一样多。"),
            Words(f"{float(there / here):g} times as much.", f"是分层的 {float(there / here):g} 倍。"),
        ),
        2 if there > here else 1 if there == here else 0,
        Words(
            f"{float(there / here):g} times: {there} vectors against {here}. In the ring, every chunk crosses on "
            f"both of its trips: unsummed or partly summed on the first, as a finished sum on the second; with "
            f"hierarchy only sums of whole hosts cross. To use two machines: `unisono run --hosts a:4,b:4 "
            f"examples/train.py`; Unisono knows the hosts and takes them into account when it chooses an algorithm.",
            f"{float(there / here):g} 倍：{there} 个向量对 {here} 个。在大环里，每一块绕环两圈，两圈都要跨主机："
            f"第一圈时还没有相加或只加了一部分，第二圈时是最终的和；分层时，跨主机的只有整台主机的和。"
            f"要使用两台机器：`unisono run --hosts a:4,b:4 examples/train.py`，Unisono 知道哪些 rank "
            f"在同一台主机上，选择算法时会考虑这一点。",
        ),
    )
    return scenes_page([trace.scene], captions, question)


def is_far(pair: tuple[int, int]) -> bool:
    """Return whether source and destination of a message are on different hosts."""
    src, dst = pair
    return src // PER_HOST != dst // PER_HOST


def far_share(trace: Trace) -> Fraction:
    """Return how many vectors cross between the hosts in all."""
    pairs = {(src, dst) for level in range(1, trace.levels + 1) for src, dst in trace.messages(level)}
    chunks = sum(trace.sent_chunks(src, dst) for src, dst in filter(is_far, pairs))
    return Fraction(chunks, trace.schedule.chunks)


TITLE = Words("Hierarchy", "分层")
STORY = Words(
    "Two hosts of four ranks: most data moves inside a host, little crosses the slow link between them.",
    "两台主机，各四个 rank：大部分数据只在主机内部传输，很少经过主机之间的慢链路。",
)
LESSON = Lesson("hosts", TITLE, STORY, (Page("hosts", TITLE, STORY, _draw),))
