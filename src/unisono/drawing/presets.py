"""Ready-made pages for a first look."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unisono.algorithms import find
from unisono.collectives import Words
from unisono.drawing.page import Settings
from unisono.drawing.scene import Scene, scene_of
from unisono.drawing.simulated import networks_for, race
from unisono.player import play


@dataclass(frozen=True)
class Preset:
    """A ready-made page: the algorithms that it shows, its title, and one sentence about it."""

    names: tuple[str, ...]
    size: int
    title: Words
    words: Words
    numbers: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    races: bool = False  # the algorithms race in simulated time
    make: Callable[[Preset], tuple[list[Scene], Settings]] = lambda preset: preset.scenes()

    def scenes(self) -> tuple[list[Scene], Settings]:
        """Return the scenes of the page and its settings."""
        algorithms = [find(name) for name in self.names]
        scenes = [scene_of(algorithm.schedule(self.size, **self.options), algorithm) for algorithm in algorithms]
        return scenes, Settings(numbers=self.numbers, title=self.title, story=self.words)

    def race(self, scenes: Sequence[Scene]) -> dict[str, Any] | None:
        """Return the simulated times of the scenes, if they race."""
        if not self.races:
            return None
        schedules = [find(name).schedule(self.size, **self.options) for name in self.names]
        return race(schedules, scenes, networks_for(self.size))


def _in_relay(preset: Preset) -> tuple[list[Scene], Settings]:
    """Let the second scene start where the first one ends, with its results; the third scene does both."""
    first, second, both = (find(name) for name in preset.names)
    size = preset.size
    inputs = [np.arange(size) + rank for rank in range(size)]
    left = play(first.schedule(size), inputs).outputs
    scenes = [
        scene_of(first.schedule(size), first),
        scene_of(second.schedule(size), second, inputs=[part.tolist() for part in left if part is not None]),
        scene_of(both.schedule(size), both),
    ]
    return scenes, Settings(
        numbers=preset.numbers,
        offsets=(0, scenes[0]["levels"], 0),
        title=preset.title,
        story=preset.words,
    )


PRESETS = {
    "four": Preset(
        ("ring",), 4, numbers=True,
        title=Words("Four ranks, one sum", "四个 rank，一个总和"),
        words=Words(
            "Four ranks add up their lists of numbers; every rank ends with [6, 10, 14, 18].",
            "四个 rank 把各自的一组数对应相加，最后每个 rank 都得到 [6, 10, 14, 18]。",
        ),
    ),
    "five": Preset(
        ("ring",), 5, numbers=True,
        title=Words("A ring of five", "五个 rank 的环"),
        words=Words(
            "A ring of five ranks takes eight steps: four to sum, four to share the sums.",
            "五个 rank 的环需要八步：四步求和，四步分发结果。",
        ),
    ),
    "identity": Preset(
        ("reduce_scatter/ring", "all_gather/ring", "ring"), 4, numbers=True, make=_in_relay,
        title=Words("all-reduce = reduce-scatter + all-gather", "all-reduce = reduce-scatter + all-gather"),
        words=Words(
            "Reduce-scatter gives every rank one finished chunk of the sum, and all-gather shares these chunks: "
            "together they are an all-reduce, step for step.",
            "reduce-scatter 之后，每个 rank 各得到一块最终的和；all-gather 再把这些块分发给所有 rank。"
            "两者相接，每一步都与 all-reduce 相同。",
        ),
    ),
    "nodes": Preset(
        ("hierarchical",), 8, options={"node": 4},
        title=Words("Two nodes, one slow link", "两个节点，一条慢链路"),
        words=Words(
            "Two nodes of four ranks each: most data moves inside a node, little crosses the slow link between them.",
            "两个节点，每个节点四个 rank：大部分数据只在节点内传输，很少经过节点之间的慢链路。",
        ),
    ),
    "race": Preset(
        ("ring", "recursive_doubling", "rabenseifner", "tree"), 8, races=True,
        title=Words("A race", "赛跑"),
        words=Words(
            "Four all-reduce algorithms race on short and on long vectors; the chart shows where the order changes.",
            "四种 all-reduce 算法分别在短向量和长向量上赛跑；图中标出名次改变的位置。",
        ),
    ),
}  # fmt: skip
