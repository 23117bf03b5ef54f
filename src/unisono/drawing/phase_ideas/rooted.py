"""The phases of broadcast, scatter, gather and reduce."""

from __future__ import annotations

from unisono.collectives import Words
from unisono.drawing.phase_ideas.common import RING_SHARES, RING_SUMS, TREE_SPREADS, TREE_SUMS, Phases

ROOTED: Phases = {
    "broadcast/naive": {
        "forwarding": Words(
            "Rank {root} sends the whole vector to each other rank in turn: {messages_}, one after the other.",
            "rank {root} 依次把整个向量发给其他每个 rank：共 {messages} 条消息，一条接一条。",
        ),
    },
    "broadcast/tree": {
        "forwarding": TREE_SPREADS,
    },
    "broadcast/chain": {
        "forwarding": Words(
            "The ranks form a line: each passes one chunk on while the next one arrives, so after {steps_} all "
            "{chunks_} have reached the last rank.",
            "rank 排成一列：一边把一块传给下一个 rank，一边接收下一块；{steps} 步之后，全部 {chunks} 块都到达末尾。",
        ),
    },
    "broadcast/scatter_all_gather": {
        "scatter": Words(
            "Rank {root} cuts the vector into {chunks_}; a rank that holds several hands half of them on, so after "
            "{steps_} each rank holds one.",
            "rank {root} 把向量切成 {chunks} 块，手里有多块的 rank 每步交出一半；{steps} 步之后，每个 rank 有一块。",
        ),
        "all-gather": RING_SHARES,
    },
    "broadcast/hierarchical": {
        "broadcast": Words(
            "First the leaders of the {nodes_} get the vector, then each leader sends it to the other ranks of its "
            "node: the vector enters each node once.",
            "先把向量传到 {nodes} 个节点的代表 rank，再由它们在节点内分发：每个节点只从外部接收一次。",
        ),
    },
    "scatter/naive": {
        "forwarding": Words(
            "Rank {root} sends each other rank its chunk in turn: {messages_}, one after the other.",
            "rank {root} 依次把各块发给它们所属的 rank：共 {messages} 条消息，一条接一条。",
        ),
    },
    "scatter/tree": {
        "forwarding": Words(
            "A rank that holds the chunks of several ranks hands half of them on; after {steps_} each rank has its "
            "own chunk.",
            "手里有多个 rank 的块时，就把其中一半交给另一个 rank；{steps} 步之后，每个 rank 得到自己的一块。",
        ),
    },
    "scatter/hierarchical": {
        "forwarding": Words(
            "Rank {root} sends the leader of each node all chunks of that node as one bundle, and the leaders hand "
            "them out inside their nodes.",
            "rank {root} 把属于一个节点的所有块合成一条消息发给它的代表 rank，再由代表 rank 在节点内分发。",
        ),
    },
    "gather/naive": {
        "forwarding": Words(
            "Every other rank sends its chunk straight to rank {root}, which receives {messages_} one after the "
            "other.",
            "其他每个 rank 都把自己的一块直接发给 rank {root}，后者逐一接收 {messages} 条消息。",
        ),
    },
    "gather/tree": {
        "forwarding": Words(
            "Chunks are collected in bundles that grow from step to step; after {steps_} rank {root} has all "
            "{chunks}.",
            "各块逐级汇集，每一步合成更大的一条消息；{steps} 步之后，rank {root} 得到全部 {chunks} 块。",
        ),
    },
    "gather/hierarchical": {
        "forwarding": Words(
            "The leader of each node collects the chunks of its node and sends them to rank {root} as one bundle.",
            "各节点的代表 rank 先收集本节点的块，再合成一条消息发给 rank {root}。",
        ),
    },
    "reduce/naive": {
        "summing": Words(
            "Rank {root} receives the whole vector of each other rank in turn and adds it to its own: {messages_}.",
            "rank {root} 依次收到其他每个 rank 的整个向量，并加到自己的数据上：共 {messages} 条消息。",
        ),
    },
    "reduce/tree": {
        "summing": TREE_SUMS,
    },
    "reduce/chain": {
        "summing": Words(
            "The ranks form a line towards rank {root}: each adds its data to a chunk and passes it on while the "
            "next chunk arrives; after {steps_} all {chunks_} are summed.",
            "rank 排成一列，通向 rank {root}：每个 rank 给一块加上自己的数据后传下去，同时接收下一块；"
            "{steps} 步之后，全部 {chunks} 块求和完成。",
        ),
    },
    "reduce/reduce_scatter_gather": {
        "reduce-scatter": RING_SUMS,
        "gather": Words(
            "The finished sums are collected in bundles that grow from step to step; after {steps_} rank {root} "
            "has all {chunks}.",
            "最终的和逐级汇集，每一步合成更大的一条消息；{steps} 步之后，rank {root} 得到全部 {chunks} 块。",
        ),
    },
    "reduce/hierarchical": {
        "reduce": Words(
            "First each node adds up the data of its ranks on its leader, then the sums of the {nodes_} are added "
            "up on rank {root}: one sum leaves each node.",
            "先在每个节点内把数据加到代表 rank 上，再把 {nodes} 个节点的和加到 rank {root} 上："
            "每个节点只发出一个和。",
        ),
    },
}
