"""Errors on a page are shown in both languages."""

from __future__ import annotations

from unisono.algorithms import algorithm
from unisono.collectives import all_reduce
from unisono.drawing.scene import scene_of
from unisono.schedule import recv, recv_reduce, send


def failure_of(program, size=3):
    return scene_of(program.schedule(size), program)["failure"]


def test_a_deadlock_is_explained_in_chinese():
    @algorithm(all_reduce)
    def stuck(rank, size):
        yield recv(0, src=(rank + 1) % size)
        yield send(0, dst=(rank - 1) % size)

    failure = failure_of(stuck)
    chinese = failure["said"]["zh"]
    assert chinese["what"] == "3 个 rank 循环等待；加深通道也无法避免"
    assert chinese["found"].startswith("rank 0 在第 1 步等待 rank 1（`recv 0 from 1`）；rank 1 ")
    assert chinese["expected"] == "每个 rank 都能运行到结束"
    assert failure["said"]["en"]["expected"] == "every rank finishes"
    assert failure["id"] == "verifier.no_depth_helps"


def test_messages_inside_a_message_are_translated_too():
    @algorithm(all_reduce)
    def twice(rank, size):
        for _ in range(2):
            yield send(0, dst=(rank + 1) % size), recv_reduce(0, src=(rank - 1) % size)

    failure = failure_of(twice, 2)
    assert failure["parameters"] == {"rank": 0}
    assert failure["said"]["zh"]["what"] == "rank 0 的输入被重复计入"
    assert failure["said"]["zh"]["found"].endswith("再加上：a0+a1（2 个 rank 的第 0 块之和：rank 0、1）")
    assert failure["step"] == 1  # an index: the second step
