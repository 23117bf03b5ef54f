"""The phases of all-to-all and barrier."""

from __future__ import annotations

from unisono.collectives import Words
from unisono.drawing.phase_ideas.common import Phases

EXCHANGING: Phases = {
    "all_to_all/naive": {
        "local work": Words("There is one rank, which keeps its chunk.", "只有一个 rank，它的块留在自己这里。"),
        "forwarding": Words(
            "Each rank sends every chunk straight to its receiver, all at once: {messages_}.",
            "每个 rank 同时把每一块直接发给它的接收者：共 {messages} 条消息。",
        ),
    },
    "all_to_all/pairwise": {
        "local work": Words(
            "Each rank copies the chunk that it keeps to its output.",
            "每个 rank 把留给自己的一块复制到输出。",
        ),
        "forwarding": Words(
            "In every step, each rank sends one chunk to the right and receives one from the left, first "
            "over distance 1, then 2, 3, ...: {steps_} in all.",
            "{steps} 步中的每一步，每个 rank 都向右发出一块、从左收到一块：距离依次为 1、2、3 等等。",
        ),
    },
    "all_to_all/bruck": {
        "local work": Words(
            "Each rank copies its chunks to the output, sorted by the distance that they have to travel.",
            "每个 rank 把各块复制到输出，按要走的距离排列。",
        ),
        "forwarding": Words(
            "A chunk travels in hops of 1, 2, 4, ... that add up to its distance, bundled with others; after "
            "{steps_} every chunk has arrived.",
            "每一块要走的距离拆成 1、2、4……几跳，每一跳都与同路的块合成一条消息；{steps} 步之后，所有块都已到达。",
        ),
    },
    "all_to_all/hierarchical": {
        "local work": [
            Words(
                "Each rank puts the chunks that it has to forward into its scratch slots.",
                "每个 rank 把需要由它转发的块放进暂存块。",
            ),
            Words(
                "The chunks that stay in the node are copied to the output.",
                "留在本节点的块复制到输出。",
            ),
        ],
        "forwarding": [
            Words(
                "Inside each node, the ranks collect the chunks that go to the same ranks of other nodes: {steps_}.",
                "在每个节点内，去往其他节点同一个 rank 的块集中到一个 rank 上，共 {steps} 步。",
            ),
            Words(
                "Each bundle goes to its receiver in another node as one message: {messages_} between {nodes_}.",
                "每一批块合成一条消息，发给其他节点的接收者：{nodes} 个节点之间共 {messages} 条消息。",
            ),
        ],
    },
    "barrier/dissemination": {
        "announcing arrivals": Words(
            "Each rank tells the rank 1, 2, 4, ... to its right which ranks have arrived; after {steps_} each knows "
            "of all {size}.",
            "每个 rank 依次告诉右边距离为 1、2、4……的 rank 哪些 rank 已到达；{steps} 步之后，各 rank 都知道全部 "
            "{size} 个 rank 已到达。",
        ),
    },
    "barrier/tree": {
        "reduce": Words(
            "News of arrivals travels up a tree; after {steps_} rank 0 knows that all {size} ranks have arrived.",
            "到达的消息沿树向上汇总；{steps} 步之后，rank 0 知道全部 {size} 个 rank 都已到达。",
        ),
        "broadcast": Words(
            "Down the same tree, every rank learns that all have arrived and may continue.",
            "沿同一棵树向下，每个 rank 得知全部 rank 都已到达，可以继续执行。",
        ),
    },
    "barrier/hierarchical": {
        "reduce": Words(
            "Inside each node, the ranks tell their leader that they have arrived.",
            "在每个节点内，各 rank 告诉代表 rank 自己已到达。",
        ),
        "barrier": Words(
            "The leaders of the {nodes_} tell each other that all ranks of their nodes have arrived.",
            "{nodes} 个节点的代表 rank 互相告知本节点已到齐。",
        ),
        "broadcast": Words(
            "Inside each node, the leader lets the other ranks continue.",
            "在每个节点内，代表 rank 放行其他 rank。",
        ),
    },
}
