"""The phases of programs that are not built in: those that run an algorithm of a collective, and all others."""

from __future__ import annotations

from unisono.collectives import Words

OF_COLLECTIVES = {
    "broadcast": Words("The data of one rank spreads to the others.", "一个 rank 的数据传给其他 rank。"),
    "scatter": Words(
        "One rank hands out a different chunk to each of the others.", "一个 rank 把不同的块分发给各 rank。"
    ),
    "gather": Words(
        "The chunks of several ranks are collected on one of them.", "各 rank 的块收集到其中一个 rank 上。"
    ),
    "reduce": Words("The data of several ranks is added up on one of them.", "各 rank 的数据加到其中一个 rank 上。"),
    "all-gather": Words(
        "Ranks pass their chunks on; after {steps_} each of them has the chunks of all.",
        "各 rank 互相传递各块；{steps} 步之后，每个 rank 都有所有的块。",
    ),
    "reduce-scatter": Words(
        "The ranks share the adding: after {steps_} each of them owns its part of the sum.",
        "各 rank 分担求和：{steps} 步之后，每个 rank 得到和的一部分。",
    ),
    "all-reduce": Words(
        "Data is added up across ranks; after {steps_} each of them has the sum.",
        "各 rank 的数据相加；{steps} 步之后，每个 rank 都有总和。",
    ),
    "all-to-all": Words(
        "Each rank sends a different chunk to each other rank.", "每个 rank 把不同的块发给其他各 rank。"
    ),
    "barrier": Words("The ranks tell each other that they have arrived.", "各 rank 互相告知自己已到达。"),
}
OF_MESSAGES = {
    "summing": Words(
        "Sums grow: in {steps_}, {messages_} bring data that the receivers add to theirs.",
        "逐步求和：{steps} 步内，{messages} 条消息送来的数据与接收方的数据相加。",
    ),
    "forwarding": Words(
        "Data spreads: in {steps_}, {messages_} bring data that the receivers store.",
        "分发数据：{steps} 步内，{messages} 条消息送来的数据由接收方存入。",
    ),
    "announcing arrivals": Words(
        "The ranks tell each other which ranks have arrived: {messages_} in {steps_}.",
        "各 rank 互相告知哪些 rank 已到达：{steps} 步内 {messages} 条消息。",
    ),
    "local work": Words(
        "Nothing is sent: ranks copy or add what they already hold.",
        "不发送消息：各 rank 在本地复制或相加已有的数据。",
    ),
}
TO_RIGHT = Words("{idea} Every message goes to the right neighbour.", "{idea}每条消息都发给右邻。")
TO_LEFT = Words("{idea} Every message goes to the left neighbour.", "{idea}每条消息都发给左邻。")
