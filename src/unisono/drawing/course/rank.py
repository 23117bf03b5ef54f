"""Lesson 1: what a rank is. Four processes run one program and pass a message along."""

from __future__ import annotations

from unisono.algorithms.declaration import Steps, algorithm, one
from unisono.collectives import Words, broadcast
from unisono.drawing.course.kinds import scenes_page
from unisono.drawing.course.record import Caption, Drawn, Lesson, Page, Question
from unisono.drawing.course.trace import Trace, joined
from unisono.drawing.scene import scene_of
from unisono.schedule import recv, send

RANKS = 4


@algorithm(broadcast, chunks=one)
def pass_it_on(rank: int, size: int, root: int = 0) -> Steps:
    """Each rank receives the data from its left neighbour and sends it to its right neighbour."""
    place = (rank - root) % size
    if place > 0:
        yield recv(0, src=(rank - 1) % size)
    if place < size - 1:
        yield send(0, dst=(rank + 1) % size)


def _draw() -> Drawn:
    trace = Trace(pass_it_on.schedule(RANKS))
    (first,) = trace.messages(1)
    second = trace.messages(2)[0]
    count = sum(len(trace.messages(level)) for level in range(1, trace.levels + 1))
    waiting = trace.idle(1)
    captions = [
        Caption(0, Words(
            f"{RANKS} processes: ranks 0 to {RANKS - 1}. Each has its own memory, which no other rank can read. Only "
            f"rank 0 has data: a0. The goal: every rank has a copy.",
            f"{RANKS} 个进程：rank 0 到 rank {RANKS - 1}。它们各有自己的内存，别的 rank 读不到。只有 rank 0 有数据 "
            f"a0，目标是让每个 rank 都有一份。",
        )),
        Caption(1, Words(
            f"All ranks run the same program (see “The program”); only the number `rank` differs. Rank {first[0]} "
            f"has nothing to wait for and sends its data to rank {first[1]}: only a message can reach another "
            f"rank's memory.",
            f"所有 rank 运行同一个程序（见“程序”），不同的只有编号 `rank`。rank {first[0]} 不用等待，把数据发给 rank "
            f"{first[1]}：要把数据放进其他 rank 的内存，只能发消息。",
        )),
        Caption(2, Words(
            f"Rank {second[0]} has received the data, so its program reaches `send`. Rank {second[1]} has been "
            f"waiting in `recv` since the start: a receive waits for its message, however long that takes.",
            f"rank {second[0]} 收到了数据，它的程序走到 `send`。rank {second[1]} 从一开始就停在 `recv`："
            f"接收会一直等到消息到达，不论要多久。",
        )),
        Caption(trace.levels, Words(
            f"After {trace.levels} steps and {count} messages all {RANKS} ranks hold a0. An operation that all ranks "
            f"perform together is a collective; this one is called broadcast.",
            f"{trace.levels} 步、{count} 条消息之后，{RANKS} 个 rank 都有了 a0。由所有 rank "
            f"共同完成的操作叫做集合通信操作；这一个叫 broadcast。",
        )),
    ]  # fmt: skip
    question = Question(
        Words(
            "All ranks start the same program at the same moment. Which ranks do nothing useful in step 1, and why?",
            "所有 rank 同时开始运行同一个程序。第 1 步里，哪些 rank 没有做任何有用的事？为什么？",
        ),
        (
            Words("None: every rank sends something in every step.", "没有：每一步里每个 rank 都在发送。"),
            Words(
                f"Ranks {joined(waiting, 'and')}: they wait for a message that has not been sent yet.",
                f"rank {joined(waiting, '和')}：它们等待的消息还没有发出。",
            ),
            Words("All but rank 0: the others run a different program.", "除 rank 0 外都是：它们运行的是别的程序。"),
        ),
        1,
        Words(
            f"Ranks {joined(waiting, 'and')} wait in `recv`. The program is the same, but `rank` decides which "
            f"lines a rank reaches. Waiting is the real cost of communication: later lessons keep more ranks busy. "
            f"A step of the animation is a level in `unisono show`; `unisono list` counts the steps of one rank's "
            f"program, at most {trace.proof.steps} here, and the rounds, {trace.proof.rounds} here. A program sees "
            f"only messages, although ranks on one host pass them through shared memory. On GPU machines each rank "
            f"usually drives its own GPU, though several can share one. Start four ranks with `unisono run -n "
            f"{RANKS} examples/sum_of_all.py`.",
            f"rank {joined(waiting, '和')} 停在 `recv`。程序相同，但执行到哪几行由 `rank` 决定。"
            f"等待才是通信的真正代价：后面几课就是让更多的 rank 忙起来。动画的一步就是 `unisono show` 中的一个层级；"
            f"`unisono list` 数的是一个 rank 的程序的步数（这里最多 {trace.proof.steps} 步）和轮数（这里 "
            f"{trace.proof.rounds} 轮）。程序看到的只有消息，尽管同一主机上的 rank 实际上通过一段共享内存传递消息。"
            f"在有 GPU 的机器上，通常每个 rank 用自己的一块 GPU，也可以几个 rank 共用一块。启动四个 rank："
            f"`unisono run -n {RANKS} examples/sum_of_all.py`。",
        ),
    )
    return scenes_page([scene_of(trace.schedule, pass_it_on)], captions, question)


STORY = Words(
    "A rank is a process with a number. It shares no memory with the others, so it must send messages.",
    "rank 就是一个有编号的进程。它与其他 rank 不共享内存，所以只能发消息。",
)
TITLE = Words("What a rank is", "什么是 rank")
LESSON = Lesson("rank", TITLE, STORY, (Page("rank", TITLE, STORY, _draw),))
