"""The phases of all-gather and reduce-scatter."""

from __future__ import annotations

from unisono.collectives import Words
from unisono.drawing.phase_ideas.common import (
    BOTH_WAYS_SHARES,
    BOTH_WAYS_SUMS,
    DOUBLING,
    HALVING,
    RING_SHARES,
    RING_SUMS,
    Phases,
)

SHARING: Phases = {
    "all_gather/naive": {
        "forwarding": Words(
            "Each rank sends its chunk straight to every other rank, all at once: {messages_} in {steps_}.",
            "每个 rank 同时把自己的一块直接发给其他所有 rank：{steps} 步内 {messages} 条消息。",
        ),
    },
    "all_gather/ring": {
        "forwarding": RING_SHARES,
    },
    "all_gather/bidirectional_ring": {
        "forwarding": BOTH_WAYS_SHARES,
    },
    "all_gather/recursive_doubling": {
        "forwarding": DOUBLING,
    },
    "all_gather/bruck": {
        "forwarding": Words(
            "Each rank sends all chunks it holds to the rank 1, 2, 4, ... to its left, so the number of chunks "
            "doubles; after {steps_} every rank has all {chunks}.",
            "每个 rank 依次把手里的块发给左边距离为 1、2、4……的 rank，块数每步翻一倍；"
            "{steps} 步之后，每个 rank 都有全部 {chunks} 块。",
        ),
    },
    "all_gather/pat": {
        "forwarding": Words(
            "A binomial tree grows from every rank at once; far hops come first, while messages are small; after "
            "{steps_} every rank has all {chunks_}.",
            "每个 rank 各以自己为根，同时展开一棵二项树，先向远处发送，因为那时消息还小；"
            "{steps} 步之后，每个 rank 都有全部 {chunks} 块。",
        ),
    },
    "all_gather/neighbour_exchange": {
        "forwarding": Words(
            "Each rank swaps with its left and its right neighbour in turn, and passes on what the other one has "
            "just given it; after {steps_} every rank has all {chunks_}.",
            "每个 rank 轮流与左邻、右邻交换，传出刚从另一侧收到的块；"
            "{steps} 步之后，每个 rank 都有全部 {chunks} 块。",
        ),
    },
    "all_gather/hierarchical": {
        "forwarding": Words(
            "First ranks with the same position in their nodes share chunks between the {nodes_}, then the "
            "ranks of each node share them: a chunk enters a node once.",
            "节点内序号相同的 rank 先在 {nodes} 个节点之间交换各块，再在节点内分享：每块只进入每个节点一次。",
        ),
    },
    "reduce_scatter/naive": {
        "summing": Words(
            "Each rank sends every chunk straight to the rank that owns it, which adds them up: {messages_} in "
            "{steps_}.",
            "每个 rank 把每一块直接发给负责它的 rank，由后者相加：{steps} 步内 {messages} 条消息。",
        ),
    },
    "reduce_scatter/ring": {
        "summing": RING_SUMS,
    },
    "reduce_scatter/bidirectional_ring": {
        "summing": BOTH_WAYS_SUMS,
    },
    "reduce_scatter/recursive_halving": {
        "summing": HALVING,
    },
    "reduce_scatter/pat": {
        "summing": Words(
            "A binomial tree leads to every rank at once, and sums are added up on the way; after {steps_} each "
            "rank owns one finished sum.",
            "每个 rank 都是一棵二项树的终点，数据沿途相加；{steps} 步之后，每个 rank 各得到一块最终的和。",
        ),
    },
    "reduce_scatter/hierarchical": {
        "summing": Words(
            "First each node adds up the data of its ranks, then ranks with the same position in their nodes add "
            "the sums of the {nodes_}: only sums travel between nodes.",
            "先在每个节点内求和，再由节点内序号相同的 rank 把 {nodes} 个节点的和相加：节点之间只传部分和。",
        ),
    },
}

# Where ranks beyond a power of two have a partner that acts for them (algorithms/folding.py).
SHARING_FOLDED = {
    ("all_gather/recursive_doubling", "forwarding"): Words(
        "{size} is not a power of two: the ranks beyond it first hand their chunks to a partner; then partners at "
        "distance 1, 2, 4, ... swap all they hold; finally, the ranks beyond it get the result.",
        "{size} 不是 2 的幂：多出的 rank 先把自己的块交给一个伙伴；然后距离为 1、2、4……的 rank 交换手里的全部块，"
        "最后把结果交给多出的 rank。",
    ),
    ("reduce_scatter/recursive_halving", "summing"): Words(
        "{size} is not a power of two: the ranks beyond it first add their data to a partner's; then partners swap "
        "halves and add them; finally, the ranks beyond it get their sums.",
        "{size} 不是 2 的幂：多出的 rank 先把数据加到一个伙伴上；然后通信双方各把尚待求和的数据交出一半并相加，"
        "最后把和交给多出的 rank。",
    ),
}
