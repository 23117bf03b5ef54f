"""The ideas of phases that several algorithms have.

``{steps}``, ``{messages}``, ``{chunks}`` and ``{nodes}`` are numbers; in English, ``{steps_}`` is "1 step" or
"4 steps".
"""

from __future__ import annotations

from collections.abc import Mapping

from unisono.collectives import Words

# Of each algorithm, by the name of the phase; several where a phase occurs more than once.
Phases = Mapping[str, Mapping[str, Words | list[Words]]]

RING_SUMS = Words(
    "Each chunk makes one trip around the ring and gains one addend per step; after {steps_} each rank owns one "
    "finished sum.",
    "每一块沿环走一圈，每走一步就加上一个 rank 的数据；{steps} 步之后，每个 rank 各得到一块最终的和。",
)
RING_SHARES = Words(
    "Each rank passes on the chunk that it has just received; after {steps_} every rank has all {chunks_}.",
    "每个 rank 把刚收到的一块传给右邻；{steps} 步之后，每个 rank 都有全部 {chunks} 块。",
)
RING_SHARES_SUMS = Words(
    "Each rank passes on the finished sum that it has just received; after {steps_} every rank has all {chunks} "
    "sums.",
    "每个 rank 把刚收到的最终的和传给右邻；{steps} 步之后，每个 rank 都有全部 {chunks} 块的和。",
)
BOTH_WAYS_SUMS = Words(
    "Partial sums of each chunk travel to its owner from both sides at once; after {steps_} each rank owns one "
    "finished sum.",
    "每一块的部分和同时从两侧传向负责它的 rank；{steps} 步之后，每个 rank 各得到一块最终的和。",
)
BOTH_WAYS_SHARES = Words(
    "Each chunk travels in both directions at once; half a trip, {steps_}, takes it to every rank.",
    "每一块同时朝两个方向绕环；走半圈（{steps} 步）就传到所有 rank。",
)
HALVING = Words(
    "Partners swap halves of what they still have to sum, and each sums the half that it keeps; after {steps_} each "
    "rank owns one finished sum.",
    "通信双方各把尚待求和的数据交出一半，并把收到的数据加到留下的一半上；{steps} 步之后，每个 rank "
    "各得到一块最终的和。",
)
DOUBLING = Words(
    "Partners swap all the chunks that they hold, so the number of chunks doubles; after {steps_} every rank has "
    "all {chunks}.",
    "通信双方交换手里的全部块，拥有的块数每步翻一倍；{steps} 步之后，每个 rank 都有全部 {chunks} 块。",
)
EXTRA_GIVE = Words(
    "{size} is not a power of two: first each rank beyond the largest power of two hands its data to a partner, "
    "which acts for both.",
    "{size} 不是 2 的幂：超出最大的 2 的幂的那些 rank，先各把数据交给一个伙伴，由伙伴代表双方参加后面的步骤。",
)
EXTRA_GET = Words(
    "The ranks that handed over their data at the beginning receive the result.",
    "开始时交出数据的 rank 收到结果。",
)
TREE_SUMS = Words(
    "In each step, half of the remaining ranks hand their sums to the other half; after {steps_} rank {root} holds "
    "the sum of all {size} ranks.",
    "每一步，剩下的 rank 中有一半把部分和交给另一半；{steps} 步之后，rank {root} 得到全部 {size} 个 rank "
    "的数据之和。",
)
TREE_SPREADS = Words(
    "Every rank that has the data sends it to one that does not; the number of such ranks doubles, so {steps_} reach "
    "all {size} ranks.",
    "已有数据的 rank 各自传给一个还没有的 rank，拥有数据的 rank 数每步翻一倍，{steps} 步就传到全部 {size} 个 rank。",
)
ONE_NODE = Words(
    "All {size} ranks are in one node, so everything happens inside it: {messages_} in {steps_}.",
    "全部 {size} 个 rank 都在一个节点内，一切都在节点内进行：{steps} 步内 {messages} 条消息。",
)
INTO_NODES = Words(
    "The result spreads inside each node, from its leader to the other ranks.",
    "各节点的代表 rank 把结果分发给节点内的其他 rank。",
)
ONTO_LEADERS = Words(
    "Inside each node, the data of all ranks is added up on the leader.",
    "在每个节点内，所有 rank 的数据都加到代表 rank 上。",
)
