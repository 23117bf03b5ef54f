"""Pages that are good to begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unisono.algorithms import find
from unisono.collectives import Words
from unisono.drawing.page import Settings
from unisono.drawing.scene import Scene, scene_of
from unisono.player import play


@dataclass(frozen=True)
class Preset:
    """What to draw, and what there is to see."""

    names: tuple[str, ...]
    size: int
    words: Words
    numbers: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    make: Callable[[Preset], tuple[list[Scene], Settings]] = lambda preset: preset.scenes()

    def scenes(self) -> tuple[list[Scene], Settings]:
        """Return what the page shows, and how."""
        found = [find(name) for name in self.names]
        scenes = [scene_of(algorithm.schedule(self.size, **self.options), algorithm) for algorithm in found]
        return scenes, Settings(numbers=self.numbers)


def _in_relay(preset: Preset) -> tuple[list[Scene], Settings]:
    """The second begins where the first ends, with what that leaves; the third does both."""
    first, second, both = (find(name) for name in preset.names)
    size = preset.size
    inputs = [np.arange(size) + rank for rank in range(size)]
    left = play(first.schedule(size), inputs).outputs
    scenes = [
        scene_of(first.schedule(size), first),
        scene_of(second.schedule(size), second, inputs=[part.tolist() for part in left if part is not None]),
        scene_of(both.schedule(size), both),
    ]
    title = Words(*[" + ".join(scene["collective"]["title"] for scene in scenes[:2])] * 2)
    return scenes, Settings(
        numbers=preset.numbers,
        offsets=(0, scenes[0]["levels"], 0),
        title=Words(*(f"{scenes[2]['collective']['title']} = {words}" for words in title)),
        story=preset.words,
    )


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
    "identity": Preset(
        ("reduce_scatter/ring", "all_gather/ring", "ring"), 4, numbers=True, make=_in_relay,
        words=Words(
            "Reduce-scatter leaves everyone one finished sum, all-gather hands them round: together they are an "
            "all-reduce, step for step.",
            "reduce-scatter 让每个进程得到一项总和，all-gather 再把各项分给大家：合起来就是 all-reduce，步步相同。",
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
            "Four ways to all-reduce on a race track: short vectors, long vectors, and where the order changes.",
            "四种 all-reduce 算法赛跑：短向量、长向量，以及名次在哪里改变。",
        ),
    ),
}  # fmt: skip
