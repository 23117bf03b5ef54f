"""What is wrong with a program, in Chinese: the sentences of a ScheduleError, phrase by phrase.

The errors themselves are English, as everything in a terminal is. A phrase has a ``{}`` for every piece that
differs from error to error; a piece is a number, code, or a phrase itself. A test reads every sentence that the
verifier can say from its source, and asks for its Chinese here.
"""

from __future__ import annotations

import re
from functools import cache

BETWEEN = "; "  # two sentences
PARTS = ("what", "expected", "found", "hint")
PHRASES = {
    # What a slot holds.
    "nothing": "空",
    "chunk {} of rank {}": "进程 {1} 的第 {0} 块",
    "chunk {} of {} ranks added: {}": "{1} 个进程的第 {0} 块之和（进程 {2}）",
    "chunk {}": "第 {0} 块",
    "{} of other ranks": "其他进程的{0}",
    "chunk {} of some ranks": "某些进程的第 {0} 块",
    "{} (the sender's chunk {})": "{0}（发送方的第 {1} 块）",
    "missing: {}": "缺少：进程 {0}",
    "plus {}": "再加上{0}",
    "as on rank {}: {}": "与进程 {0} 相同：{1}",
    "on rank {}: {}": "进程 {0} 上：{1}",
    "all {} ranks have arrived": "全部 {0} 个进程都已到达",
    "it knows nothing of: {}": "它不知道这些进程：{0}",
    # The result.
    "chunk {} does not hold the result": "第 {0} 块不是应有的结果",
    "chunk {} is added up in another order than on rank {}: same numbers, other bits":
        "第 {0} 块的相加次序与进程 {1} 不同：数相同，位不同",
    "chunk {} is not the same as on rank {} where what is sent is rounded": "发送时舍入，第 {0} 块与进程 {1} 不同",
    "chunk {} is not the same as on rank {} where what is sent is rounded at random":
        "发送时随机舍入，第 {0} 块与进程 {1} 不同",
    "it goes on without having heard of everyone": "它还没有得知所有进程到达就继续了",
    "two different chunks are added to each other": "把两个不同的块相加了",
    "the input of rank {} is counted twice": "进程 {0} 的输入被计算了两次",
    "two sums that have no rank in common": "没有共同进程的两个和",
    "`unisono show` with --rank {} lists what this rank does": "`unisono show` 加上 --rank {0} 可列出该进程所做的事",
    "let every rank add in the same order (receive into scratch, then combine in rank order), or let one rank add "
    "and send the result":
        "让每个进程按相同次序相加（先接收到暂存，再按进程号次序合并），或者由一个进程相加后发送结果",
    "let one rank add and send the result to the others, or call without a codec":
        "由一个进程相加后把结果发给其他进程，或者调用时不用压缩",
    "add only chunks of the same number; use another scratch slot for each chunk":
        "只把编号相同的块相加；每个块使用各自的暂存槽",
    "{} instead of {} where a finished sum arrives": "收到已完成的和时，用 {0} 而不是 {1}",
    # What is read and written.
    "chunk {} is read, but nothing was ever put there": "读取了第 {0} 块，但那里从未放入任何内容",
    "an input, or something received or copied into it in an earlier step":
        "输入，或先前某一步接收、复制到那里的内容",
    "receive it first": "先接收它",
    "receive it first; before a rooted collective only the root may hold something":
        "先接收它；有根的集合通信开始时，只有根进程可以持有数据",
    "slot {} is input, which is left as it was": "槽 {0} 是输入，输入须保持原样",
    "a slot of the output ({} to {}) or scratch": "输出的槽（{0} 到 {1}）或暂存",
    "slot {} is for piece {} of a block and is given another": "槽 {0} 是块中第 {1} 片的位置，却放入了另一片",
    "piece {}": "第 {0} 片",
    "piece {}: pieces may differ in length": "第 {0} 片：各片长度可能不同",
    "chunk {} is given the data of another chunk": "第 {0} 块被放入了另一块的数据",
    "something is added to chunk {}, but nothing was ever put there": "向第 {0} 块累加，但那里从未放入任何内容",
    "an input, or something received or copied into it before": "输入，或先前接收、复制到那里的内容",
    "use {} or {} for the first thing that goes there": "第一次放入时用 {0} 或 {1}",
    "chunk {} is written twice in one step": "同一步里写了两次第 {0} 块",
    "chunk {} is read by one op and written by another of the same step": "同一步里一个操作读第 {0} 块，另一个写它",
    "{} and {}": "{0} 和 {1}",
    "put them into two steps, in the order you mean": "按你想要的次序分成两步",
    # Messages.
    "the message from rank {} has another number of chunks": "来自进程 {0} 的消息块数不同",
    "{} (chunks {})": "{0} 块（{1}）",
    "make the send and its receive name the same chunks": "让发送和对应的接收写同样的块",
    "{} message from rank {} to rank {} sent but never received": "从进程 {1} 发往进程 {2} 的 {0} 条消息无人接收",
    "{} messages from rank {} to rank {} sent but never received": "从进程 {1} 发往进程 {2} 的 {0} 条消息无人接收",
    "a recv or recv_reduce on rank {} with src={}": "进程 {0} 上有 src={1} 的 recv 或 recv_reduce",
    "chunk {} left in the channel": "第 {0} 块留在通道里",
    "receive it on rank {}, or do not send it": "在进程 {0} 上接收它，或者不要发送",
    "rank {} has finished without receiving this": "进程 {0} 已结束，却没有接收它",
    "rank {} has finished without sending this": "进程 {0} 已结束，却没有发送它",
    "a receive on rank {} for each {} on rank {}": "进程 {2} 的每个 {1}，在进程 {0} 上都有对应的接收",
    "a send on rank {} for each {} on rank {}": "进程 {2} 的每个 {1}，在进程 {0} 上都有对应的发送",
    "rank {} ended after {} steps": "进程 {0} 在 {1} 步之后结束",
    "rank {} ended after {} steps, and the channel of depth {} is full":
        "进程 {0} 在 {1} 步之后结束，深度为 {2} 的通道已满",
    "add the missing recv on rank {}, or leave this op out": "在进程 {0} 上补上缺少的 recv，或者去掉这个操作",
    "add the missing send on rank {}, or leave this op out": "在进程 {0} 上补上缺少的 send，或者去掉这个操作",
    "{} ranks wait for each other in a circle": "{0} 个进程循环等待",
    "{} ranks wait for each other in a circle at channel depth {}": "通道深度为 {1} 时，{0} 个进程循环等待",
    "deeper channels do not help": "加深通道也无济于事",
    "channels of depth {} would do": "深度为 {0} 的通道就够了",
    "every rank gets to its end": "每个进程都能运行到结束",
    "rank {} waits in step {} for rank {} ({})": "进程 {0} 在第 {1} 步等待进程 {2}（{3}）",
    "... and {} more": "……以及另外 {0} 个",
    "receive before sending more, or put the send and the receive into one step":
        "先接收再继续发送，或把发送和接收放进同一步",
    "receive before sending more, send several chunks as one message, or ask for channels of depth {}":
        "先接收再继续发送，把几个块合成一条消息，或者使用深度为 {0} 的通道",
    "let one of them send first: a step sends before it receives": "让其中一个先发送：一步之中先发送后接收",
    # What is no program.
    "the program returned {}, not steps": "程序返回了 {0}，而不是步骤",
    "a program is a generator: it says `yield` before each step": "程序是一个生成器：每一步之前写 `yield`",
    "the program has not ended after {} steps": "程序在 {0} 步之后还没有结束",
    "end the loop, or declare @algorithm(..., step_limit=N) if it really is that long":
        "结束循环；如果确实这么长，请声明 @algorithm(..., step_limit=N)",
    "this is not a step": "这不是一个步骤",
    "this is not an op": "这不是一个操作",
    "the program raised {}": "程序抛出了 {0}",
    "line {} of {}: {}": "{1} 第 {0} 行：{2}",
    "mend the program for this rank and size": "修正程序在这个进程号和进程数下的行为",
    "there is no op {}": "没有操作 {0}",
    "one of {}": "{0} 之一",
    "the two sides have different numbers of chunks": "两边的块数不同",
    "there is no rank {}": "没有进程 {0}",
    "a rank from {} to {}": "从 {0} 到 {1} 的进程",
    "wrap round with % size, or stop at the end; in mapped(...), list only ranks that exist":
        "用 % size 绕回，或在末尾停止；在 mapped(...) 中只列出存在的进程",
    "a rank cannot send to or receive from itself": "进程不能给自己发送，也不能从自己接收",
    "use copy(chunk, to=...) or combine(chunk, into=...) for what stays on this rank":
        "留在本进程的内容请用 copy(chunk, to=...) 或 combine(chunk, into=...)",
    "the op names no chunk": "操作没有写出任何块",
    "leave the op out of the step": "从这一步里去掉该操作",
    "the op names a chunk twice": "操作把同一个块写了两次",
    "there is no chunk {}": "没有第 {0} 块",
    "one of those that are declared, {} to {}": "所声明的块之一，{0} 到 {1}",
    "declare more, @algorithm(..., chunks=one_per_rank, scratch=), or wrap round with % size":
        "声明更多的块 @algorithm(..., chunks=one_per_rank, scratch=)，或用 % size 绕回",
    "a number of {} bits is not {}": "一个 {0} 位的数不是{1}",
    "{} is not {}": "{0} 不是{1}",
    "a rank": "进程号",
    "a chunk": "块号",
    "an integer": "整数",
    "use // instead of / when you divide": "做除法时用 // 而不是 /",
    "yield an op, send(0, dst=1), or several with commas between them; to play another program: yield from "
    "program(...); to yield the ops of a generator at once: yield *(send(0, dst=r) for r in others),":
        "yield 一个操作 send(0, dst=1)，或用逗号隔开的几个；要执行另一个程序：yield from program(...)；"
        "要一次给出生成器里的操作：yield *(send(0, dst=r) for r in others),",
    "write send(chunk, dst=rank), recv(chunk, src=rank), recv_reduce(chunk, src=rank), copy(chunk, to=slot), "
    "combine(chunk, into=slot)":
        "请写 send(chunk, dst=rank)、recv(chunk, src=rank)、recv_reduce(chunk, src=rank)、copy(chunk, to=slot)、"
        "combine(chunk, into=slot)",
    "the program names a chunk or a rank that mapped(...) does not list: it has {} ranks and {} chunks":
        "程序用到了 mapped(...) 没有列出的块或进程：其中有 {0} 个进程和 {1} 个块",
    "all": "全部",
    "give the inner program the size of its group, program(me, len(ranks)), and list a chunk for each that it uses, "
    "scratch included": "给内层程序它所在组的大小 program(me, len(ranks))，并为它用到的每个块（包括暂存）列出一个块",
    "a program with {} cannot run backwards": "含有 {0} 的程序不能倒着运行",
    "only {} and {} lose nothing that the way back would need": "只有 {0} 和 {1} 不会丢失返回时需要的内容",
    "{}(...) was given {} and not its steps": "传给 {0}(...) 的是 {1}，而不是它的步骤",
    "call the program: {}(program(me, how_many), ...)": "请调用程序：{0}(program(me, how_many), ...)",
    "the inner program yields something that is not a step": "内层程序产生的内容不是一个步骤",
}  # fmt: skip


def in_chinese(text: str) -> str | None:
    """Return an English sentence of an error in Chinese; None for one that is not known here."""
    for pattern, chinese in _patterns():
        found = pattern.fullmatch(text)
        if found:
            return chinese.format(*(in_chinese(piece) or piece for piece in found.groups()))
        if BETWEEN in text and BETWEEN not in pattern.pattern:
            parts = {part: in_chinese(part) for part in text.split(BETWEEN)}
            return "；".join(parts[part] or part for part in parts) if any(parts.values()) else None
    return None


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    """Return the phrases, in the order in which they are tried.

    First come those that hold several sentences, so that a text of several others is taken apart after them; then
    those with most words of their own, as the others may be parts of them.
    """
    ordered = sorted(PHRASES, key=lambda english: (BETWEEN not in english, -len(english.replace("{}", ""))))
    return [
        (re.compile("(.+?)".join(map(_exactly, english.split("{}"))), re.DOTALL), PHRASES[english])
        for english in ordered
    ]


def _exactly(text: str) -> str:
    return re.escape(text).replace(re.escape(BETWEEN), BETWEEN)
