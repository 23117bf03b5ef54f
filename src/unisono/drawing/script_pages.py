"""Pages with separate scripts: about the use of collectives in training, and about bus bandwidth.

Four of them show a training step that was recorded on real ranks (``training/*.json``, written by
tools/record_training.py), so this package needs neither torch nor the strategies. The fifth counts the chunks that
the ring sends. They are pages of the course.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from unisono.algorithms import find
from unisono.collectives import COLLECTIVES, Collective, Words
from unisono.drawing.page import Settings, fill_template, script
from unisono.drawing.scene import Scene, scene_of

RECORDED = Path(__file__).parent / "training"
RING_SIZES = (2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64)


@dataclass(frozen=True)
class ScriptPage:
    """A page: its title, one sentence about it, the script of its page, and the data of the script."""

    title: Words
    words: Words
    script: str
    data: Callable[[], dict[str, Any]]

    def write(self, settings: Settings) -> str:
        """Return the page."""
        title, words = settings.title or self.title, settings.story or self.words
        data = {
            **self.data(), "title": title._asdict(), "words": words._asdict(),
            "settings": settings.as_dict(), "home": settings.home,
        }  # fmt: skip
        return fill_template("page.html", title.en, data, script(self.script))


def _recorded(strategy: str) -> dict[str, Any]:
    text = (RECORDED / f"{strategy}.json").read_text(encoding="utf-8")
    return {"training": {"strategy": strategy, **json.loads(text)}}


def _ring() -> dict[str, Any]:
    ring = find("ring")
    return {
        "rings": [_without_code(scene_of(ring.schedule(size), ring)) for size in RING_SIZES],
        "collectives": [
            {
                "name": each.name,
                "title": each.name.replace("_", "-"),
                "factor": bus_formula(each),
                "bound": each.bound,
            }
            for each in COLLECTIVES
            if each.carries_data
        ],
    }


def _without_code(scene: Scene) -> Scene:
    return {**scene, "code": {"sources": [], "stacks": [], "text": []}}


def bus_formula(collective: Collective) -> str:
    """Return the ratio of bus bandwidth to algorithm bandwidth as a formula."""
    per_peer, constant = collective.bound
    return str(constant) if constant else f"{'' if per_peer == 1 else per_peer}(p−1)/p"


SCRIPT_PAGES = {
    "data-parallel": ScriptPage(
        Words("Data parallel", "数据并行"),
        Words(
            "Every rank has the whole model and different data; gradients are averaged during the backward pass.",
            "每个 rank 都有完整的模型，但数据不同；在反向传播过程中就对梯度求平均。",
        ),
        "lessons/training", partial(_recorded, "data_parallel"),
    ),
    "tensor-parallel": ScriptPage(
        Words("Tensor parallel: column, then row", "张量并行：先按列切，再按行切"),
        Words(
            "Every matrix is split. If the first is split by columns and the second by rows, nothing is sent between "
            "them.",
            "每个矩阵都要切分。只要第一个按列切、第二个按行切，两者之间就不需要通信。",
        ),
        "lessons/training", partial(_recorded, "tensor_parallel"),
    ),
    "zero3": ScriptPage(
        Words("ZeRO-3 / FSDP", "ZeRO-3 / FSDP"),
        Words(
            "No rank stores what another one stores: a layer is gathered when it is needed, and freed afterwards.",
            "各 rank 保存的内容互不重复：一层的参数用到时才收集完整，用完就释放。",
        ),
        "lessons/training", partial(_recorded, "zero3"),
    ),
    "experts": ScriptPage(
        Words("A mixture of experts", "混合专家模型"),
        Words(
            "Each rank has one expert. Rows are sent to the experts that they choose, and the results come back.",
            "每个 rank 有一个专家。各行发给自己选中的专家，结果再发回来。",
        ),
        "lessons/training", partial(_recorded, "experts"),
    ),
    "busbw": ScriptPage(
        Words("Why bus bandwidth has the factor 2(p−1)/p", "总线带宽为什么有系数 2(p−1)/p"),
        Words(
            "Count the chunks that a rank sends in an all-reduce: they are the factor.",
            "数一数 all-reduce 中每个 rank 发送多少块，就得到这个系数。",
        ),
        "lessons/busbw", _ring,
    ),
}  # fmt: skip
