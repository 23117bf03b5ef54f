"""Makes the pages of the course: of an algorithm, of several in relay or in a race, or of a script such as a training
step.

A function here takes what is drawn and the texts, and returns a ``Drawn``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from unisono.drawing.course.record import Caption, Drawn, Question
from unisono.drawing.page import Settings, write_page
from unisono.drawing.scene import Scene
from unisono.drawing.script_pages import SCRIPT_PAGES

RACE = 10  # positions of a race from start to end, as in page/compare/compare_bar.mjs
REPLAY = 100  # positions of a page in simulated time, as in page/common/moment_player.mjs


def scenes_page(
    scenes: Sequence[Scene], captions: Sequence[Caption], question: Question, *, numbers: bool = False,
    offsets: tuple[int, ...] | None = None,
) -> Drawn:  # fmt: skip
    """Draw one algorithm; or several in relay, each from the step in ``offsets`` on."""

    def write(settings: Settings) -> str:
        return write_page(
            scenes, _title(settings), replace(settings, numbers=numbers or settings.numbers, offsets=offsets)
        )

    last = max(scene["levels"] + start for scene, start in zip(scenes, offsets or (0,) * len(scenes), strict=True))
    return Drawn(write, tuple(captions), question, last, _picture(scenes[-1]))


def race_page(
    scenes: Sequence[Scene], race: dict[str, Any], captions: Sequence[Caption], question: Question
) -> Drawn:
    """Draw several algorithms that race in simulated time."""

    def write(settings: Settings) -> str:
        return write_page(scenes, _title(settings), settings, race=race)

    return Drawn(write, tuple(captions), question, RACE, _picture(scenes[-1]), by_steps=False)


def network_page(scene: Scene, simulated: dict[str, Any], captions: Sequence[Caption], question: Question) -> Drawn:
    """Draw one algorithm in simulated time, with the load of every link."""

    def write(settings: Settings) -> str:
        return write_page([scene], _title(settings), settings, simulated=simulated)

    return Drawn(write, tuple(captions), question, REPLAY, _picture(scene), by_steps=False)


def script_page(name: str, last: int, captions: Sequence[Caption], question: Question) -> Drawn:
    """Draw one of the pages that have separate scripts."""
    return Drawn(SCRIPT_PAGES[name].write, tuple(captions), question, last, {"script": name})


def _title(settings: Settings) -> str:
    return settings.title.en if settings.title else ""


def _picture(scene: Scene) -> dict[str, Any]:
    return {"size": scene["size"], "layout": scene["layout"], "pairs": scene["pairs"]}
