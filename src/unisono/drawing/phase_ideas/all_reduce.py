"""The phases of all-reduce."""

from __future__ import annotations

from unisono.collectives import Words
from unisono.drawing.phase_ideas.common import (
    BOTH_WAYS_SHARES,
    BOTH_WAYS_SUMS,
    DOUBLING,
    EXTRA_GET,
    EXTRA_GIVE,
    HALVING,
    INTO_NODES,
    ONTO_LEADERS,
    RING_SHARES_SUMS,
    RING_SUMS,
    TREE_SPREADS,
    TREE_SUMS,
    Phases,
)

ALL_REDUCE: Phases = {
    "all_reduce/naive": {
        "forwarding": Words(
            "Each rank sends its whole vector to every other rank: {messages_} at once.",
            "每个 rank 同时把整个向量发给其他所有 rank：共 {messages} 条消息。",
        ),
        "local work": Words(
            "Each rank adds up the vectors of all {size} ranks by itself, in the order of the ranks, so that all get "
            "the same bits.",
            "每个 rank 各自按 rank 编号的顺序把 {size} 个 rank 的向量相加，因此结果逐位一致。",
        ),
    },
    "all_reduce/direct": {
        "reduce-scatter": Words(
            "Each rank owns one chunk: all other ranks send it their part, and it adds them up; {messages_} at once.",
            "每个 rank 负责一块：其他 rank 都把这一块发给它，由它相加；同时有 {messages} 条消息。",
        ),
        "all-gather": Words(
            "Each rank sends its finished sum straight to every other rank: {messages_} at once.",
            "每个 rank 同时把自己算出的和直接发给其他所有 rank：共 {messages} 条消息。",
        ),
    },
    "all_reduce/ring": {
        "reduce-scatter": RING_SUMS,
        "all-gather": RING_SHARES_SUMS,
    },
    "all_reduce/bidirectional_ring": {
        "reduce-scatter": BOTH_WAYS_SUMS,
        "all-gather": BOTH_WAYS_SHARES,
    },
    "all_reduce/recursive_doubling": {
        "summing": Words(
            "Partners at distance 1, 2, 4, ... swap their sums and add them, so a sum covers twice as many ranks "
            "after each step.",
            "距离为 1、2、4……的 rank 依次交换部分和并相加，每步之后，一个和所含的 rank 数翻一倍。",
        ),
        "forwarding": EXTRA_GET,
    },
    "all_reduce/butterfly": {
        "summing": Words(
            "In groups that differ in one digit of their number, ranks swap their sums and add them.",
            "编号只有一位不同的 rank 为一组，组内交换部分和并相加。",
        ),
        "forwarding": Words(
            "The ranks of a group send each other their sums so far; the groups of the next stage are further apart.",
            "同组的 rank 互相发送当前的部分和；下一阶段，同组的 rank 相距更远。",
        ),
        "local work": Words(
            "Each rank adds up the sums of its group, in the same order on every rank.",
            "每个 rank 把本组的部分和相加，各 rank 的相加顺序相同。",
        ),
    },
    "all_reduce/tree": {
        "reduce": TREE_SUMS,
        "broadcast": TREE_SPREADS,
    },
    "all_reduce/double_tree": {
        "summing": Words(
            "Two trees share the work: each adds up one half of the vector towards its root, in {steps_}.",
            "两棵树各负责一半向量，分别向自己的根求和，共 {steps} 步。",
        ),
        "forwarding": Words(
            "Each half of the result goes down its tree again; after {steps_} every rank has both halves.",
            "结果的两半分别沿各自的树向下分发；{steps} 步之后，每个 rank 都有两半。",
        ),
    },
    "all_reduce/rabenseifner": {
        "summing": EXTRA_GIVE,
        "reduce-scatter": HALVING,
        "all-gather": DOUBLING,
        "forwarding": EXTRA_GET,
    },
    "all_reduce/hierarchical": {
        "reduce-scatter": Words(
            "Inside each node, the ranks share the adding: after {steps_} each rank owns its part of the sum of the "
            "node.",
            "在每个节点内，各 rank 分担求和：{steps} 步之后，每个 rank 得到本节点的和的一部分。",
        ),
        "all-reduce": Words(
            "Each rank adds up its part with its counterparts in the other nodes: {nodes_} take part, and only "
            "these sums travel between nodes.",
            "每个 rank 与其他节点中的对应 rank 把各自的部分相加：共 {nodes} 个节点，节点之间只传这些和。",
        ),
        "all-gather": Words(
            "Inside each node, the ranks pass on the finished parts; after {steps_} every rank has the whole result.",
            "在每个节点内，各 rank 互相传递已完成的部分；{steps} 步之后，每个 rank 都有完整的结果。",
        ),
    },
    "all_reduce/leaders": {
        "reduce": ONTO_LEADERS,
        "all-reduce": Words(
            "The leaders of the {nodes_} add up their sums; no other rank communicates between nodes.",
            "{nodes} 个节点的代表 rank 把各自的和相加；其他 rank 不参与节点之间的通信。",
        ),
        "broadcast": INTO_NODES,
    },
    "all_reduce/torus": {
        "reduce-scatter": Words(
            "Along each row of the grid, chunks travel around a ring and are summed; after {steps_} each rank owns "
            "its part of the sum of its row.",
            "沿网格的每一行，各块绕环求和；{steps} 步之后，每个 rank 得到本行的和的一部分。",
        ),
        "all-reduce": Words(
            "Along each column, the ranks add up the sums of the rows, again around a ring.",
            "沿网格的每一列，各 rank 同样绕环把各行的和相加。",
        ),
        "all-gather": Words(
            "Along each row, the finished sums travel around the ring; after {steps_} every rank has the whole "
            "result.",
            "沿网格的每一行，最终的和绕环传递；{steps} 步之后，每个 rank 都有完整的结果。",
        ),
    },
    "all_reduce/swing": {
        "summing": Words(
            "Partners at distance 1, 1, 3, 5, ... on the ring swap halves of what they still have to sum, and each "
            "sums the half that it keeps.",
            "环上距离为 1、1、3、5……的 rank 各把尚待求和的数据交出一半，并把收到的数据加到留下的一半上。",
        ),
        "forwarding": Words(
            "The same partners in reverse order swap all the sums that they hold; after {steps_} every rank has all "
            "{chunks}.",
            "同样的配对按相反的顺序交换手里的全部和；{steps} 步之后，每个 rank 都有全部 {chunks} 块。",
        ),
    },
}

# Where ranks beyond a power of two have a partner that acts for them (algorithms/folding.py).
ALL_REDUCE_FOLDED = {
    ("all_reduce/recursive_doubling", "summing"): Words(
        "{size} is not a power of two: the ranks beyond it first add their data to a partner's; then partners at "
        "distance 1, 2, 4, ... swap their sums and add them.",
        "{size} 不是 2 的幂：多出的 rank 先把数据加到一个伙伴上；然后距离为 1、2、4……的 rank 依次交换部分和并相加。",
    ),
    ("all_reduce/swing", "summing"): Words(
        "{size} is not a power of two: the ranks beyond it first add their data to a partner's; then partners at "
        "distance 1, 1, 3, 5, ... swap halves, and each sums the half that it keeps.",
        "{size} 不是 2 的幂：多出的 rank 先把数据加到一个伙伴上；然后环上距离为 1、1、3、5……的 rank "
        "各把尚待求和的数据交出一半，并把收到的数据加到留下的一半上。",
    ),
    ("all_reduce/swing", "forwarding"): Words(
        "The same partners in reverse order swap all the sums that they hold; finally, the ranks that handed over "
        "their data receive the result.",
        "同样的配对按相反的顺序交换手里的全部和；最后，交出数据的 rank 收到结果。",
    ),
}
