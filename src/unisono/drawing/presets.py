"""Pages that are good to begin with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from unisono.collectives import Words


@dataclass(frozen=True)
class Preset:
    """What to draw, and what there is to see."""

    names: tuple[str, ...]
    size: int
    words: Words
    numbers: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


PRESETS = {
    "four": Preset(
        ("ring",), 4, numbers=True,
        words=Words(
            "Four ranks add up their lists: everyone ends with [6, 10, 14, 18].",
            "四个进程把各自的一列数相加：每个进程最后都得到 [6, 10, 14, 18]。",
        ),
    ),
    "five": Preset(
        ("ring",), 5, numbers=True,
        words=Words(
            "A ring of five in eight steps: four to add up, four to share.",
            "五个进程的环，共八步：四步求和，四步分发。",
        ),
    ),
    "nodes": Preset(
        ("hierarchical",), 8, options={"node": 4},
        words=Words(
            "Two nodes of four ranks: most of the work stays inside, little crosses the slow link.",
            "两个节点，每个四个进程：大部分工作在节点内完成，慢的链路上传得很少。",
        ),
    ),
    "race": Preset(
        ("ring", "recursive_doubling", "rabenseifner", "tree"), 8,
        words=Words(
            "Four ways to all-reduce on a race track: short messages, long messages, and where the order changes.",
            "四种 all-reduce 算法赛跑：短消息、长消息，以及名次在哪里改变。",
        ),
    ),
}  # fmt: skip
